/** A panel of a report: what it is grouped by, the same as files, one sentence about what it counts, and its four states. */
import { Button, NativeSelect, Skeleton } from '@mantine/core';
import { Download } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './Report.module.css';

interface Props {
  title: string;
  about: string;
  controls?: ReactNode;
  children: ReactNode;
}

export function Report({ title, about, controls, children }: Props) {
  return (
    <Panel title={title} actions={<div className={classes['controls']}>{controls}</div>}>
      <p className={classes['about']}>{about}</p>
      {children}
    </Panel>
  );
}

interface StatesProps<Answer> {
  query: { data: Answer | undefined; error: Error | null; refetch: () => unknown };
  isEmpty: (answer: Answer) => boolean;
  empty: string;
  height?: number;
  children: (answer: Answer) => ReactNode;
}

export function States<Answer>({ query, isEmpty, empty, height = 180, children }: StatesProps<Answer>) {
  const { t } = useTranslation('deferred');
  const { data, error, refetch } = query;
  if (data === undefined && error) return <Failed error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton height={height} aria-busy />;
  if (isEmpty(data)) return <Empty title={t('reports.nothing')}>{empty}</Empty>;
  return children(data);
}

interface ChoiceProps<Value extends string> {
  label: string;
  value: Value;
  values: readonly { value: Value; label: string }[];
  onChange: (value: Value) => void;
}

export function Choice<Value extends string>({ label, value, values, onChange }: ChoiceProps<Value>) {
  return (
    <NativeSelect
      size="xs"
      className={classes['choice']}
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value as Value)}
      data={[...values]}
    />
  );
}

export function Files({ paths }: { paths: { form: string; path: string }[] }) {
  return (
    <>
      {paths.map(({ form, path }) => (
        <Button key={form} component="a" href={path} download size="xs" variant="default" leftSection={<Download size={14} aria-hidden />}>
          {form}
        </Button>
      ))}
    </>
  );
}
