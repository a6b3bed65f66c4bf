/** Moves a quota without dragging. */
import { Button, Group, NativeSelect, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

interface Props {
  goals: string[];
  onDone: (parent: string) => void;
  onClose: () => void;
}

export function MoveForm({ goals, onDone, onClose }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [goal, setGoal] = useState(goals[0] ?? '');
  if (goals.length === 0) return <Text size="sm">{t('deferred:quotas.nowhere')}</Text>;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onDone(goal);
      }}
    >
      <NativeSelect
        label={t('deferred:quotas.below')}
        data={goals}
        value={goal}
        onChange={(event) => setGoal(event.currentTarget.value)}
        data-autofocus
      />
      <Group justify="flex-end" mt="lg" gap="xs">
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button type="submit">{t('deferred:quotas.action.move')}</Button>
      </Group>
    </form>
  );
}
