/** Ctrl-K: one field that goes anywhere: to a page, a cluster, a job by its name. Fetched when it is first opened. */
import { Modal, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Search } from 'lucide-react';
import { type KeyboardEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { Job, Page } from '../api/types.ts';
import { clustersQuery } from '../fleet/queries.ts';
import { useGo } from '../scope/useScope.ts';
import { ROOMS } from './navigation.ts';
import classes from './Palette.module.css';

interface Place {
  to: string;
  label: string;
  kind: string;
}

const REST_MS = 150;
const SHOWN = 12;

export function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const goTo = useGo();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const places = usePlaces(text.trim());
  const at = Math.min(chosen, places.length - 1);
  const go = (place: Place | undefined) => {
    if (!place) return;
    onClose();
    goTo(place.to);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter') go(places[at]);
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    setChosen((at + (event.key === 'ArrowDown' ? 1 : -1) + places.length) % Math.max(places.length, 1));
  };
  return (
    <Modal opened onClose={onClose} withCloseButton={false} size={560} yOffset="12vh" centered={false} padding={0} title={t('palette.title')} classNames={{ header: 'cv-hidden' }}>
      <TextInput
        data-autofocus
        size="md"
        variant="unstyled"
        className={classes['field'] ?? ''}
        leftSection={<Search size={17} aria-hidden />}
        aria-label={t('palette.title')}
        placeholder={t('palette.hint')}
        role="combobox"
        aria-expanded
        aria-controls="palette-places"
        aria-activedescendant={places.length > 0 ? `palette-${at}` : undefined}
        value={text}
        onChange={({ currentTarget: { value } }) => {
          setText(value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <div id="palette-places" role="listbox" aria-label={t('palette.places')} className={classes['places']}>
        {places.map((place, i) => (
          <button key={place.to} id={`palette-${i}`} type="button" role="option" tabIndex={-1} aria-selected={i === at} onClick={() => go(place)}>
            <span>{place.label}</span>
            <small>{place.kind}</small>
          </button>
        ))}
        {places.length === 0 && <p className="cv-soft">{t('palette.nothing')}</p>}
      </div>
    </Modal>
  );
}

function usePlaces(text: string): Place[] {
  const { t } = useTranslation();
  const [rested] = useDebouncedValue(text, REST_MS);
  const clusters = useQuery(clustersQuery);
  const jobs = useQuery({
    queryKey: ['jobs', 'list', 'palette', rested],
    queryFn: ({ signal }) => api.get<Page<Job>>('jobs/', { query: { search: rested, page_size: 8 }, signal }),
    placeholderData: keepPreviousData,
    enabled: rested !== '',
  });
  const fixed: Place[] = [
    ...ROOMS.map(({ to, name }) => ({ to, label: t(`rooms.${name}`), kind: t('palette.page') })),
    { to: '/join', label: t('join.title'), kind: t('palette.page') },
    ...(clusters.data?.results ?? []).map(({ name }) => ({
      to: `/fleet/${encodeURIComponent(name)}`,
      label: name,
      kind: t('fleet.cluster'),
    })),
  ];
  const words = text.toLowerCase();
  // Until the answer to what is typed comes, those of the answer before that it would name, too: Enter goes to the first.
  const current = rested === text && !jobs.isPlaceholderData;
  const found = rested === '' || text === '' ? [] : (jobs.data?.results ?? []).filter(({ name }) => current || name.toLowerCase().includes(words));
  return [
    ...fixed.filter(({ label }) => label.toLowerCase().includes(words)),
    ...found.map((job) => ({ to: `/jobs/${job.id}`, label: `${job.namespace}/${job.name}`, kind: job.kind })),
  ].slice(0, SHOWN);
}
