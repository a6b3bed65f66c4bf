/** A new quota: its name, and the namespaces whose jobs belong there. */
import { Button, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { words } from './SettingsForm.tsx';

interface Props {
  taken: string[];
  onDone: (node: Record<string, unknown>) => void;
  onClose: () => void;
}

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export function AddForm({ taken, onDone, onClose }: Props) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [namespaces, setNamespaces] = useState('');
  const fault = taken.includes(name) ? t('quotas.nameTaken') : name && !NAME.test(name) ? t('quotas.nameFault') : '';
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (name && !fault) onDone({ name, ...(words(namespaces).length ? { namespaces: words(namespaces) } : {}) });
      }}
    >
      <TextInput label={t('quotas.name')} value={name} error={fault} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
      <TextInput
        mt="sm"
        label={t('quotas.namespaces')}
        description={t('quotas.namespacesNote')}
        value={namespaces}
        onChange={(event) => setNamespaces(event.currentTarget.value)}
      />
      <Group justify="flex-end" mt="lg" gap="xs">
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button type="submit">{t('quotas.action.add')}</Button>
      </Group>
    </form>
  );
}
