/** Windows of a quota, one form for each: once or again and again, and the min and max while it is open. */
import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { EMPTY, rowsOf, textOf, type WindowRow } from './windows.ts';
import classes from './WindowsField.module.css';

interface Props {
  text: string;
  onChange: (text: string) => void;
}

const AGAIN = ['cron', 'duration', 'time-zone'] as const;
const ONCE = ['from', 'to'] as const;
const ALWAYS = ['min', 'max', 'lead'] as const;

export function WindowsField({ text, onChange }: Props) {
  const { t } = useTranslation('deferred');
  const [rows, setRows] = useState(() => rowsOf(text));
  if (rows === null) {
    return <TextInput mt="sm" label={t('windowEditor.title')} description={t('windowEditor.asText')} value={text} onChange={(event) => onChange(event.currentTarget.value)} />;
  }
  const give = (next: WindowRow[]) => {
    setRows(next);
    onChange(textOf(next));
  };
  return (
    <fieldset className={classes['all']}>
      <legend>{t('windowEditor.title')}</legend>
      <p className="cv-soft">{t('windowEditor.note')}</p>
      {rows.map((row, place) => (
        <OneWindow
          key={place}
          row={row}
          number={place + 1}
          onChange={(change) => give(rows.map((each, i) => (i === place ? { ...each, ...change } : each)))}
          onRemove={() => give(rows.filter((_, i) => i !== place))}
        />
      ))}
      <Button size="xs" variant="default" leftSection={<Plus size={14} aria-hidden />} onClick={() => give([...rows, EMPTY])}>
        {t('windowEditor.add')}
      </Button>
    </fieldset>
  );
}

interface RowProps {
  row: WindowRow;
  number: number;
  onChange: (change: Partial<WindowRow>) => void;
  onRemove: () => void;
}

function OneWindow({ row, number, onChange, onRemove }: RowProps) {
  const { t } = useTranslation('deferred');
  return (
    <fieldset className={classes['one']}>
      <legend>{t('windowEditor.window', { number })}</legend>
      <NativeSelect
        size="xs"
        label={t('windowEditor.opens')}
        value={row.again ? 'again' : 'once'}
        data={(['again', 'once'] as const).map((value) => ({ value, label: t(`windowEditor.${value}`) }))}
        onChange={(event) => onChange({ again: event.currentTarget.value === 'again' })}
      />
      {[...(row.again ? AGAIN : ONCE), ...ALWAYS].map((key) => (
        <TextInput
          key={key}
          size="xs"
          label={t(`windowEditor.keys.${key}.label`)}
          placeholder={t(`windowEditor.keys.${key}.example`)}
          value={row[key]}
          onChange={(event) => onChange({ [key]: event.currentTarget.value })}
        />
      ))}
      <Group justify="flex-end" mt="xs">
        <Button size="xs" variant="subtle" color="red" leftSection={<Trash2 size={14} aria-hidden />} onClick={onRemove}>
          {t('windowEditor.remove', { number })}
        </Button>
      </Group>
    </fieldset>
  );
}
