/**
 * Views of a list kept under a name: an address each, one's own or shared with a namespace or the fleet.
 *
 * A dialog, for a menu may hold no field to type in.
 */
import { Button, Popover, Skeleton } from '@mantine/core';
import { Bookmark } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { ListName } from './queries.ts';

const ViewList = lazy(async () => ({ default: (await import('./ViewList.tsx')).ViewList }));

interface Props {
  /** The list the views are of. */
  list: ListName;
  search: string;
  onOpen: (search: string) => void;
}

export function SavedViews({ list, search, onOpen }: Props) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover position="bottom-end" width={320} trapFocus returnFocus opened={isOpen} onChange={setOpen}>
      <Popover.Target>
        <Button size="xs" variant="default" leftSection={<Bookmark size={14} aria-hidden />} onClick={() => setOpen(!isOpen)}>
          {t('list.views')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown p={8}>
        <Suspense fallback={<Skeleton height={80} aria-busy />}>
          <ViewList
            list={list}
            search={search}
            onOpen={(view) => {
              setOpen(false);
              onOpen(view);
            }}
          />
        </Suspense>
      </Popover.Dropdown>
    </Popover>
  );
}
