/** Where in a long list one is, and the way to its neighbours. */
import { ActionIcon } from '@mantine/core';
import { ChevronLeft, ChevronRight } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import classes from './Pager.module.css';

interface Props {
  page: number;
  pageSize: number;
  count: number;
  onPage: (page: number) => void;
}

export function Pager({ page, pageSize, count, onPage }: Props) {
  const { t } = useTranslation();
  if (count === 0) return null;
  const last = Math.ceil(count / pageSize);
  const from = (page - 1) * pageSize + 1;
  return (
    <nav className={classes['pager']} aria-label={t('pager.label')}>
      <span className="cv-numbers">{t('pager.range', { from, to: Math.min(count, page * pageSize), count })}</span>
      <ActionIcon variant="default" disabled={page <= 1} aria-label={t('pager.previous')} onClick={() => onPage(page - 1)}>
        <ChevronLeft size={16} />
      </ActionIcon>
      <ActionIcon variant="default" disabled={page >= last} aria-label={t('pager.next')} onClick={() => onPage(page + 1)}>
        <ChevronRight size={16} />
      </ActionIcon>
    </nav>
  );
}
