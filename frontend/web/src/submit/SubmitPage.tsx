/** Submitting: a form and the file it writes, side by side, with what the fleet would do about it before anything is sent. */
import { Button, FileButton, Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Send } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useLocation, useSearchParams } from 'react-router';

import { useMay } from '../api/me.ts';
import { Problem } from '../api/problem.ts';
import type { Applied } from '../api/types.ts';
import { useGo } from '../scope/useScope.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { convoy, curlFile, kubectl } from '../ui/commands.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { Editor } from './Editor.tsx';
import { exampleNames, FIRST_EXAMPLE } from './examples.ts';
import { FormPanel } from './FormPanel.tsx';
import { type Mark, markOf, syntaxMarks } from './manifest.ts';
import { PreviewPanel } from './PreviewPanel.tsx';
import { previewQuery, useApply } from './queries.ts';
import { useBeginning } from './useBeginning.ts';
import classes from './SubmitPage.module.css';

const REST_MS = 500;

/** Once the text is saved as a file. */
const COMMANDS = {
  kubectl: kubectl('apply', '-f', 'job.yaml'),
  cli: convoy('apply', '-f', 'job.yaml'),
  curl: curlFile('apply/', 'job.yaml'),
};

export default function SubmitPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const go = useGo();
  const may = useMay('apply');
  const [params] = useSearchParams();
  const clone = params.get('clone');
  const job = clone ?? params.get('job');
  const { state } = useLocation() as { state: { text?: string } | null };
  const [example, setExample] = useState<string | null>(job || state?.text ? null : FIRST_EXAMPLE);
  const [text, setText] = useState(state?.text ?? '');
  const [rested] = useDebouncedValue(text, REST_MS);
  const broken = useMemo(() => syntaxMarks(text), [text]);
  const preview = useQuery({ ...previewQuery(rested), enabled: may && rested.trim() !== '' && broken.length === 0 });
  const apply = useApply((applied) => go(whereTo(applied)));
  useBeginning(example, job, clone !== null, text, setText);
  // An answer is shown beside the text it belongs to, and beside no other.
  const fresh = text === rested;
  const refusal = apply.variables === text ? apply.error : null;
  const marks = useMemo(
    () => (broken.length > 0 ? broken : fresh ? marksOf(rested, preview.error) : []),
    [broken, fresh, rested, preview.error],
  );
  const refused = may ? '' : t('jobs.notAllowed');
  const unready = text.trim() === '' ? t('deferred:submit.nothing') : marks.length > 0 ? t('deferred:submit.mendFirst') : '';
  const obstacle = refused || unready;
  return (
    <>
      <PageHeader title={t('deferred:submit.title')} note={t('deferred:submit.note')}>
        <Select
          size="xs"
          aria-label={t('deferred:submit.example')}
          data={exampleNames}
          value={example}
          onChange={setExample}
          allowDeselect={false}
          searchable
        />
        <FileButton accept=".yaml,.yml,.json" onChange={(file) => void file?.text().then(setText)}>
          {(button) => (
            <Button {...button} size="xs" variant="default">
              {t('deferred:submit.file')}
            </Button>
          )}
        </FileButton>
        <CopyAs commands={COMMANDS} />
        <ActionButton
          size="xs"
          leftSection={<Send size={14} aria-hidden />}
          obstacle={obstacle}
          loading={apply.isPending}
          onClick={() => apply.mutate(text)}
        >
          {t('deferred:submit.send')}
        </ActionButton>
      </PageHeader>
      <div className={classes['columns']}>
        <div className={classes['side']}>
          <FormPanel text={text} onChange={setText} />
          <PreviewPanel
            preview={fresh ? preview.data : undefined}
            error={refusal ?? (fresh ? preview.error : null) ?? (refused ? new Error(refused) : null)}
            broken={broken}
            busy={!fresh || preview.isFetching}
          />
        </div>
        <Panel title={t('deferred:submit.yaml')} flush>
          <Editor label={t('deferred:submit.yaml')} text={text} marks={marks} onChange={setText} />
        </Panel>
      </div>
    </>
  );
}

function marksOf(text: string, error: Error | null): Mark[] {
  return error instanceof Problem ? error.fields.map(({ field, detail }) => markOf(text, field, detail)) : [];
}

/** To the job, when there is one; to the list of them otherwise. */
function whereTo(applied: Applied[]): string {
  const jobs = applied.filter(({ kind }) => !/Policy$|^(ConfigMap|Secret|ServiceAccount|PersistentVolumeClaim|ElasticQuotaTree)$/.test(kind));
  const [only] = jobs;
  return jobs.length === 1 && only ? `/jobs/${only.id}` : '/jobs';
}
