/** The job's manifest as it was submitted, as it stands in its member, and what differs between the two. */
import { SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { stringify } from 'yaml';

import type { JobDetail } from '../api/types.ts';
import { CopyText } from '../ui/CopyAs.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { diff, isSame, type Line } from './diff.ts';
import { copyQuery } from './queries.ts';
import classes from './JobYaml.module.css';

type View = 'submitted' | 'copy' | 'diff';

const text = (manifest: unknown) => stringify(manifest, { sortMapEntries: true, lineWidth: 0 }).trimEnd();

export function JobYaml({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  const [view, setView] = useState<View>('submitted');
  const views = [
    { value: 'submitted', label: t('job.submittedYaml') },
    ...(job.cluster
      ? [
          { value: 'copy', label: t('job.copyYaml', { cluster: job.cluster }) },
          { value: 'diff', label: t('job.diff') },
        ]
      : []),
  ];
  return (
    <Panel flush>
      <div className={classes['head']}>
        <SegmentedControl
          size="xs"
          aria-label={t('job.yamlView')}
          data={views}
          value={view}
          onChange={(value) => setView(value as View)}
        />
      </div>
      {view === 'submitted' ? <Plain yaml={text(job.manifest)} /> : <Copied job={job} view={view} />}
    </Panel>
  );
}

function Copied({ job, view }: { job: JobDetail; view: View }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery({ ...copyQuery(job.id), retry: false });
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={320} aria-busy />;
  if (view === 'copy') return <Plain yaml={text(data.manifest)} />;
  const lines = diff(text(job.manifest), text({ ...data.manifest, status: undefined }));
  if (isSame(lines)) return <p className={classes['same']}>{t('job.same')}</p>;
  return <Lines lines={lines} />;
}

function Plain({ yaml }: { yaml: string }) {
  return (
    <div className={classes['plain']}>
      <CopyText text={yaml} />
      <Lines lines={yaml.split('\n').map((line) => ({ mark: ' ', text: line }))} />
    </div>
  );
}

function Lines({ lines }: { lines: Line[] }) {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard
    <pre className={classes['yaml']} tabIndex={0}>
      {lines.map(({ mark, text: line }, number) => (
        <span key={number} data-mark={mark}>
          {mark === ' ' ? '  ' : `${mark} `}
          {line}
          {'\n'}
        </span>
      ))}
    </pre>
  );
}
