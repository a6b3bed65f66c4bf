/** The jobs that have pods on a node, and, where it is drained, how fast they leave. It is empty once no pod is left. */
import { Skeleton } from '@mantine/core';
import { Server } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Node, NodeEvictions } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { polished } from '../ui/serverText.ts';

interface Props {
  node: Node;
  there: NodeEvictions | undefined;
  error: Error | null;
  onRetry: () => void;
}

export function NodeJobs({ node: { excluded }, there, error, onRetry }: Props) {
  const { t } = useTranslation('deferred');
  const unseen = there ? there.jobs_left + there.jobs_staying - there.jobs.length : 0;
  return (
    <Panel title={t('node.jobs')}>
      {!there && error && <Failed error={error} onRetry={onRetry} />}
      {!there && !error && <Skeleton height={48} aria-busy />}
      {excluded && <p>
          {polished(excluded.message)}
          {excluded.drains && ` ${t('node.leaving')}`}
        </p>}
      {there?.pods_left === 0 && (
        <Empty title={t('node.noJobs')} icon={Server}>
          {t('node.noJobsBody')}
        </Empty>
      )}
      {there && there.jobs.length > 0 && (
        <ul>
          {there.jobs.map(({ id, kind, namespace, name, leaves }) => (
            <li key={id}>
              <Link to={`/jobs/${id}`}>{name}</Link>
              <div className="cv-soft">
                {namespace} · {kind}
                {!leaves && ` · ${t('node.stays')}`}
              </div>
            </li>
          ))}
        </ul>
      )}
      {there && there.pods_left > 0 && <p>{t('node.podsLeft', { count: there.pods_left })}</p>}
      {unseen > 0 && <p className="cv-soft">{t('node.unseen', { count: unseen })}</p>}
      {there?.drained && there.jobs_left > 0 && (
        <p role="status">
          {t('drain.limit', { count: there.per_minute })} · {t('drain.minutes', { count: there.minutes_left })}
        </p>
      )}
    </Panel>
  );
}
