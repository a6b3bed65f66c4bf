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
  const { t } = useTranslation(['translation', 'deferred']);
  const [name, setName] = useState('');
  const [namespaces, setNamespaces] = useState('');
  const fault = taken.includes(name) ? t('deferred:quotas.nameTaken') : name && !NAME.test(name) ? t('deferred:quotas.nameFault') : '';
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (name && !fault) onDone({ name, ...(words(namespaces).length ? { namespaces: words(namespaces) } : {}) });
      }}
    >
      <TextInput label={t('deferred:quotas.name')} value={name} error={fault} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
      <TextInput
        mt="sm"
        label={t('deferred:quotas.namespaces')}
        description={t('deferred:quotas.namespacesNote')}
        value={namespaces}
        onChange={(event) => setNamespaces(event.currentTarget.value)}
      />
      <Group justify="flex-end" mt="lg" gap="xs">
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button type="submit">{t('deferred:quotas.action.add')}</Button>
      </Group>
    </form>
  );
}
