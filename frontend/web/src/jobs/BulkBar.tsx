/** What may be done with the jobs that are selected: previewed job by job, then done, with what was refused. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { useMay } from '../api/me.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { BulkDialog } from './BulkDialog.tsx';
import type { Action } from './states.ts';
import classes from './ListTools.module.css';

const ACTIONS: Action[] = ['suspend', 'resume', 'delete'];

export function BulkBar({ ids, onClear }: { ids: string[]; onClear: () => void }) {
  const { t } = useTranslation();
  const may = { suspend: useMay('suspend'), resume: useMay('resume'), delete: useMay('delete') };
  const [asked, setAsked] = useState<Action | null>(null);
  if (ids.length === 0) return null;
  return (
    <div className={classes['bar']} role="toolbar" aria-label={t('list.selected', { count: ids.length })}>
      <strong className="cv-numbers">{t('list.selected', { count: ids.length })}</strong>
      {ACTIONS.map((action) => (
        <ActionButton
          key={action}
          obstacle={may[action] ? '' : t('jobs.notAllowed')}
          size="compact-xs"
          {...(action === 'delete' ? { color: 'red', variant: 'light' } : { variant: 'default' })}
          onClick={() => setAsked(action)}
        >
          {t(`jobs.action.${action}`)}
        </ActionButton>
      ))}
      <Button size="compact-xs" variant="subtle" color="gray" onClick={onClear}>
        {t('list.unselect')}
      </Button>
      {asked && (
        <BulkDialog
          action={asked}
          ids={ids}
          onClose={(done) => {
            setAsked(null);
            if (done) onClear();
          }}
        />
      )}
    </div>
  );
}
