/** What a quota has beside its numbers: namespaces, weight, what it lends, how its queue goes. Only what was changed is handed on. */
import { Button, Group, NativeSelect, Skeleton, TextInput } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { Quota } from './model.ts';

const WindowsField = lazy(async () => ({ default: (await import('./WindowsField.tsx')).WindowsField }));

interface Props {
  quota: Quota;
  onDone: (set: Record<string, unknown>) => void;
  onClose: () => void;
}

const TEXTS = [
  ['weight', 'weight'],
  ['lend', 'alibabacloud.com/lendlimit'],
  ['affinity', 'cluster-affinity'],
  ['priorityClasses', 'priority-classes'],
  ['maxPriority', 'max-priority'],
  ['minRuntime', 'min-runtime'],
  ['maxRuntime', 'max-runtime'],
  ['queueTimeout', 'queue-timeout'],
  ['budget', 'budget'],
  ['borrowingPriority', 'borrowing-priority'],
  ['flavorOrder', 'flavor-order'],
] as const;
const ROOT_TEXTS = [
  ['minRuntimeCeiling', 'min-runtime-ceiling'],
  ['flavors', 'flavors'],
] as const;
const CHOICES = [
  ['queuePolicy', 'queue-policy', ['', 'Priority', 'Block', 'Round']],
  ['preemptPolicy', 'preempt-policy', ['', 'Never', 'PreemptLowerPriority']],
  ['fairShare', 'fair-share', ['', 'Now', 'OverTime']],
  ['reclaim', 'reclaim', ['', 'Min', 'FairShare']],
  ['whenCanBorrow', 'when-can-borrow', ['', 'MayStopSearch', 'TryNextFlavor']],
  ['whenCanPreempt', 'when-can-preempt', ['', 'TryNextFlavor', 'MayStopSearch']],
  ['excess', 'excess', ['', 'Refuse', 'Wait', 'TakeBack']],
] as const;

export function SettingsForm({ quota, onDone, onClose }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [attributes, setAttributes] = useState(quota.attributes);
  const [namespaces, setNamespaces] = useState(quota.namespaces.join(', '));
  const give = (name: string, value: string) => setAttributes((now) => ({ ...now, [name]: value }));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const set = changedSettings(quota, attributes, words(namespaces));
        if (Object.keys(set).length > 0) onDone(set);
        else onClose();
      }}
    >
      <TextInput
        label={t('deferred:quotas.namespaces')}
        description={t('deferred:quotas.namespacesNote')}
        value={namespaces}
        onChange={(event) => setNamespaces(event.currentTarget.value)}
        data-autofocus
      />
      {[...TEXTS, ...(quota.parent === '' ? ROOT_TEXTS : [])].map(([key, name]) => (
        <TextInput
          key={key}
          mt="sm"
          label={t(`deferred:quotas.attribute.${key}.label`)}
          description={t(`deferred:quotas.attribute.${key}.note`)}
          value={attributes[name] ?? ''}
          onChange={(event) => give(name, event.currentTarget.value)}
        />
      ))}
      <Suspense fallback={<Skeleton height={60} mt="sm" aria-busy />}>
        <WindowsField text={attributes['windows'] ?? ''} onChange={(text) => give('windows', text)} />
      </Suspense>
      {CHOICES.map(([key, name, choices]) => (
        <NativeSelect
          key={key}
          mt="sm"
          label={t(`deferred:quotas.attribute.${key}.label`)}
          description={t(`deferred:quotas.attribute.${key}.note`)}
          data={choices.map((value) => ({ value, label: value || t('deferred:quotas.byDefault') }))}
          value={attributes[name] ?? ''}
          onChange={(event) => give(name, event.currentTarget.value)}
        />
      ))}
      <Group justify="flex-end" mt="lg" gap="xs">
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button type="submit">{t('deferred:quotas.intoDraft')}</Button>
      </Group>
    </form>
  );
}

export function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

function changedSettings(quota: Quota, attributes: Record<string, string>, namespaces: string[]): Record<string, unknown> {
  const changed = Object.entries(attributes).filter(([name, value]) => (quota.attributes[name] ?? '') !== value.trim());
  return {
    ...(changed.length > 0 ? { attributes: Object.fromEntries(changed.map(([name, value]) => [name, value.trim() || null])) } : {}),
    ...(namespaces.join() === quota.namespaces.join() ? {} : { namespaces }),
  };
}
