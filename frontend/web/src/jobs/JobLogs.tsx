/** The log of one of the job's pods, while it is written, or as it was kept when the pod ended; to be searched. */
import { Select, Skeleton, Switch, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ScrollText, Search } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { EndedPod, JobDetail, Pod } from '../api/types.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { commandsOfLog } from './commands.ts';
import { endedPodsQuery, jobPodsQuery } from './queries.ts';
import { useLog } from './useLog.ts';
import classes from './JobLogs.module.css';

export function JobLogs({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(jobPodsQuery(job.id));
  const { data: ended } = useQuery(endedPodsQuery(job.id));
  const [asked, setAsked] = useState('');
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={320} aria-busy />;
  const pods = choices(data.results, ended?.results ?? []);
  const pod = pods.find(({ key }) => key === asked) ?? pods[0];
  if (!pod) {
    return (
      <Panel>
        <Empty title={t('job.noLogTitle')} icon={ScrollText}>
          {t('job.noLogBody')}
        </Empty>
      </Panel>
    );
  }
  return <PodLog key={pod.key} job={job} pod={pod} pods={pods} onPod={setAsked} />;
}

interface Choice {
  key: string;
  name: string;
  attempt: number;
  role: string;
  /** The pod is gone: what was kept of its log is shown. */
  gone: boolean;
}

/** Pods that have begun, and those that are gone of which a log is kept; of one name in an attempt only the newest. */
function choices(pods: Pod[], ended: EndedPod[]): Choice[] {
  const choice = ({ name, attempt, role }: Pod | EndedPod, gone: boolean): Choice => ({
    key: `${attempt}/${name}`,
    name,
    attempt,
    role,
    gone,
  });
  const all = [
    ...pods.filter(({ phase }) => phase !== 'Pending').map((pod) => choice(pod, false)),
    ...ended.filter(({ log }) => log === 'Kept').map((pod) => choice(pod, true)),
  ];
  return all.filter(({ key }, at) => all.findIndex((other) => other.key === key) === at);
}

interface Props {
  job: JobDetail;
  pod: Choice;
  pods: Choice[];
  onPod: (name: string) => void;
}

function PodLog({ job, pod, pods, onPod }: Props) {
  const { t } = useTranslation();
  const { t: later } = useTranslation('deferred', { useSuspense: false });
  const [find, setFind] = useState('');
  const [tries, setTries] = useState(0);
  const [follow, setFollow] = useState(true);
  const { lines, error } = useLog(job.id, pod.name, pod.attempt, follow, tries);
  const wanted = find.trim().toLowerCase();
  const shown = wanted ? lines.filter((line) => line.toLowerCase().includes(wanted)) : lines;
  return (
    <Panel flush>
      <div className={classes['head']}>
        <Select
          size="xs"
          w={280}
          aria-label={t('job.logsOf')}
          allowDeselect={false}
          value={pod.key}
          onChange={(key) => onPod(key ?? '')}
          data={pods.map(({ key, name, role, attempt, gone }) => ({
            value: key,
            label: gone ? later('logKept', { role, name, attempt }) : `${role} · ${name}`,
          }))}
        />
        <TextInput
          size="xs"
          aria-label={t('job.logFind')}
          placeholder={t('job.logFind')}
          leftSection={<Search size={14} aria-hidden />}
          value={find}
          onChange={({ currentTarget: { value } }) => setFind(value)}
        />
        <Switch size="xs" label={t('job.logFollow')} checked={follow} onChange={(e) => setFollow(e.currentTarget.checked)} />
        <span className="cv-soft cv-numbers">{t('job.logMatches', { count: shown.length })}</span>
        <CopyAs commands={commandsOfLog(job, pod.name, pod.attempt)} />
      </div>
      {error && lines.length === 0 ? (
        <Failed error={error} onRetry={() => setTries(tries + 1)} />
      ) : (
        <Lines lines={shown} label={t('job.log', { pod: pod.name })} follow={follow} />
      )}
    </Panel>
  );
}

function Lines({ lines, label, follow }: { lines: string[]; label: string; follow: boolean }) {
  const { t } = useTranslation();
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, follow]);
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard
    <pre ref={box} className={classes['lines']} role="log" aria-label={label} aria-live="off" tabIndex={0}>
      {lines.length === 0 ? <span className="cv-soft">{t('job.logEmpty')}</span> : lines.join('\n')}
    </pre>
  );
}
