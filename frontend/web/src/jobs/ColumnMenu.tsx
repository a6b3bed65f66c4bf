/** Which columns the list shows; the job and its state always. */
import { Button, Checkbox, Popover, Stack } from '@mantine/core';
import { Columns3 } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { OPTIONAL, type OptionalColumn } from './columnNames.ts';

interface Props {
  shown: readonly OptionalColumn[];
  onShow: (shown: readonly OptionalColumn[]) => void;
}

export function ColumnMenu({ shown, onShow }: Props) {
  const { t } = useTranslation();
  return (
    <Popover position="bottom-end" width={220} trapFocus returnFocus>
      <Popover.Target>
        <Button size="xs" variant="default" leftSection={<Columns3 size={14} aria-hidden />}>
          {t('list.columns')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t('list.columns')}>
        <Stack gap={8}>
          {OPTIONAL.map((name) => (
            <Checkbox
              key={name}
              size="xs"
              label={t(`jobs.column.${name}`)}
              checked={shown.includes(name)}
              onChange={({ currentTarget: { checked } }) => onShow(checked ? [...shown, name] : shown.filter((each) => each !== name))}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
