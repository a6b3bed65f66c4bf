/** The draft before it counts: what differs, what it would do to jobs, who was faster; and applied with a comment. */
import { Alert, Button, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { QuotaPreview, QuotaSaved } from '../api/types.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Panel } from '../ui/Panel.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { ErrorText } from '../ui/ServerText.tsx';
import { commandsToSave } from './commands.ts';
import { DifferenceList } from './DifferenceList.tsx';
import { overlaps } from './draft.ts';
import { EffectList } from './EffectList.tsx';
import { useSave } from './queries.ts';
import type { Draft } from './useDraft.ts';
import classes from './DraftPanel.module.css';

interface Props {
  draft: Draft;
  preview: QuotaPreview | undefined;
  /** The answer for this draft is under way. */
  looking: boolean;
  failed: Error | null;
  onSaved: (saved: QuotaSaved) => void;
}

export function DraftPanel({ draft, preview, looking, failed, onSaved }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [comment, setComment] = useState('');
  const { mutate, isPending, error } = useSave((saved, sent) => {
    setComment('');
    draft.saved(sent.changes);
    onSaved(saved);
  });
  const { base, changes, theirs } = draft;
  const saving = { generation: base.generation, changes, comment };
  const obstacle = theirs
    ? t('deferred:quotas.rebaseFirst')
    : preview && !preview.saves
      ? t('deferred:quotas.notValid', { count: preview.faults.length + preview.refusals.length })
      : '';
  return (
    <Panel title={t('deferred:quotas.draft', { count: draft.differences.length })}>
      {theirs && <Theirs draft={draft} />}
      <div className={classes['columns']}>
        <section aria-label={t('deferred:quotas.diff')}>
          <h3>{t('deferred:quotas.diff')}</h3>
          <DifferenceList differences={draft.differences} />
        </section>
        <section aria-label={t('deferred:quotas.effect')} aria-busy={looking}>
          <h3>{t('deferred:quotas.effect')}</h3>
          {/* Spoken are answers, not each time that one is looked for. */}
          <div aria-live="polite">
            {preview && <EffectList preview={preview} />}
            {!preview && failed && <div className="cv-soft"><ErrorText error={failed} /></div>}
          </div>
          {!preview && !failed && <div className="cv-soft">{t('deferred:quotas.looking')}</div>}
        </section>
      </div>
      <Refusal error={error} />
      <Group mt="md" gap="xs" align="flex-end">
        <TextInput
          className={classes['comment'] ?? ''}
          label={t('deferred:quotas.comment')}
          placeholder={t('deferred:quotas.commentNote')}
          value={comment}
          maxLength={500}
          onChange={(event) => setComment(event.currentTarget.value)}
        />
        <CopyAs commands={commandsToSave(saving)} />
        <Button variant="subtle" color="gray" onClick={draft.discard}>
          {t('deferred:quotas.discard')}
        </Button>
        <Button variant="default" onClick={draft.undo}>
          {t('deferred:quotas.undo')}
        </Button>
        <Button
          loading={isPending}
          data-disabled={obstacle !== '' || undefined}
          aria-disabled={obstacle !== ''}
          title={obstacle || undefined}
          onClick={() => obstacle === '' && mutate(saving)}
        >
          {t('deferred:quotas.apply')}
        </Button>
      </Group>
      {obstacle && <p className={classes['obstacle']}>{obstacle}</p>}
    </Panel>
  );
}

function Theirs({ draft }: { draft: Draft }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { base, theirs, changes, rebase } = draft;
  if (!theirs) return null;
  const both = overlaps(base, theirs, changes);
  return (
    <Alert color="yellow" mb="md" role="alert" title={t('deferred:quotas.theirs', { who: theirs.changed_by, generation: theirs.generation })}>
      <p>{t('deferred:quotas.theirsNote', { generation: base.generation })}</p>
      {both.length > 0 && (
        <>
          <p>{t('deferred:quotas.overlap')}</p>
          <DifferenceList differences={both} />
        </>
      )}
      <Button size="xs" mt="xs" onClick={rebase}>
        {t('deferred:quotas.rebase', { generation: theirs.generation })}
      </Button>
    </Alert>
  );
}
