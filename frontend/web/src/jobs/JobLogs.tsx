/** The log of one of the job's pods, while it is written; to be searched. */
import { Select, Skeleton, Switch, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ScrollText, Search } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { JobDetail, Pod } from '../api/types.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { commandsOfLog } from './commands.ts';
import { jobPodsQuery } from './queries.ts';
import { useLog } from './useLog.ts';
import classes from './JobLogs.module.css';

export function JobLogs({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(jobPodsQuery(job.id));
  const [asked, setAsked] = useState('');
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={320} aria-busy />;
  const started = data.results.filter(({ phase }) => phase !== 'Pending');
  const pod = started.find(({ name }) => name === asked) ?? started[0];
  if (!pod) {
    return (
      <Panel>
        <Empty title={t('job.noLogTitle')} icon={ScrollText}>
          {t('job.noLogBody')}
        </Empty>
      </Panel>
    );
  }
  return <PodLog key={pod.name} job={job} pod={pod} pods={started} onPod={setAsked} />;
}

interface Props {
  job: JobDetail;
  pod: Pod;
  pods: Pod[];
  onPod: (name: string) => void;
}

function PodLog({ job, pod, pods, onPod }: Props) {
  const { t } = useTranslation();
  const [find, setFind] = useState('');
  const [tries, setTries] = useState(0);
  const [follow, setFollow] = useState(true);
  const { lines, error } = useLog(job.id, pod.name, follow, tries);
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
          value={pod.name}
          onChange={(name) => onPod(name ?? '')}
          data={pods.map(({ name, role }) => ({ value: name, label: `${role} · ${name}` }))}
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
        <CopyAs commands={commandsOfLog(job, pod.name)} />
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
