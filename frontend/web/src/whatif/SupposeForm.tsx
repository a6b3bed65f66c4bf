/** The changes that can be supposed, all of them at once: of clusters, nodes, a quota, and jobs that are not submitted yet. */
import { FileButton, Button, NumberInput, Select, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { SubmitEvent } from 'react';
import { useTranslation } from 'react-i18next';

import { clustersQuery, queuesQuery } from '../fleet/queries.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { Panel } from '../ui/Panel.tsx';
import { obstacleOf, type Supposed } from './suppose.ts';
import classes from './WhatIfPage.module.css';

interface Props {
  supposed: Supposed;
  onChange: (part: Partial<Supposed>) => void;
  onCalculate: () => void;
  onClear: () => void;
}

export function SupposeForm({ supposed, onChange, onCalculate, onClear }: Props) {
  const { t } = useTranslation('deferred');
  const clusters = useQuery(clustersQuery).data?.results.map(({ name }) => name) ?? [];
  const obstacle = obstacleOf(supposed);
  const calculate = (event: SubmitEvent) => {
    event.preventDefault();
    if (obstacle === null) onCalculate();
  };
  return (
    <Panel title={t('whatif.suppose')}>
      <form className={classes['form']} onSubmit={calculate}>
        <fieldset>
          <legend>{t('whatif.cluster')}</legend>
          <Choice label={t('whatif.cluster')} choices={clusters} value={supposed.cluster} onChange={(cluster) => onChange({ cluster })} />
          <Select
            size="xs"
            aria-label={t('whatif.what')}
            data={(['lose', 'drain'] as const).map((value) => ({ value, label: t(`whatif.${value}`) }))}
            allowDeselect={false}
            value={supposed.what}
            onChange={(what) => onChange({ what: what === 'drain' ? what : 'lose' })}
          />
        </fieldset>
        <fieldset>
          <legend>{t('whatif.nodes')}</legend>
          <NumberInput
            size="xs"
            aria-label={t('whatif.nodes')}
            placeholder="0"
            min={1}
            max={10_000}
            allowDecimal={false}
            clampBehavior="strict"
            value={supposed.nodes}
            onChange={(nodes) => onChange({ nodes: String(nodes) })}
          />
          <Choice label={t('whatif.nodesIn')} choices={clusters} value={supposed.nodesIn} onChange={(nodesIn) => onChange({ nodesIn })} />
        </fieldset>
        <QuotaFields supposed={supposed} onChange={onChange} />
        <JobFields supposed={supposed} onChange={onChange} />
        <div className={classes['buttons']}>
          <ActionButton type="submit" size="xs" obstacle={obstacle ? t(`whatif.${obstacle}`) : ''}>
            {t('whatif.calculate')}
          </ActionButton>
          <Button size="xs" variant="default" onClick={onClear}>
            {t('whatif.clear')}
          </Button>
        </div>
      </form>
    </Panel>
  );
}

function QuotaFields({ supposed, onChange }: Pick<Props, 'supposed' | 'onChange'>) {
  const { t } = useTranslation('deferred');
  const queues = useQuery(queuesQuery).data?.results.map(({ path }) => path) ?? [];
  return (
    <fieldset>
      <legend>{t('whatif.quota')}</legend>
      <Choice label={t('whatif.quota')} choices={queues} value={supposed.quota} onChange={(quota) => onChange({ quota })} />
      {(['resource', 'min', 'max'] as const).map((name) => (
        <TextInput
          key={name}
          size="xs"
          aria-label={t(`whatif.${name}`)}
          placeholder={t(`whatif.${name}`)}
          value={supposed[name]}
          onChange={({ currentTarget: { value } }) => onChange({ [name]: value.trim() })}
        />
      ))}
    </fieldset>
  );
}

function JobFields({ supposed, onChange }: Pick<Props, 'supposed' | 'onChange'>) {
  const { t } = useTranslation('deferred');
  return (
    <fieldset>
      <legend>{t('whatif.job')}</legend>
      <Textarea
        size="xs"
        className={classes['wide'] ?? ''}
        classNames={{ input: 'cv-mono' }}
        aria-label={t('whatif.job')}
        placeholder={t('whatif.jobHint')}
        rows={8}
        spellCheck={false}
        value={supposed.job}
        onChange={({ currentTarget: { value: job } }) => onChange({ job })}
      />
      <FileButton accept=".yaml,.yml,.json" onChange={(file) => void file?.text().then((job) => onChange({ job }))}>
        {(button) => (
          <Button {...button} size="compact-xs" variant="default">
            {t('whatif.file')}
          </Button>
        )}
      </FileButton>
    </fieldset>
  );
}

function Choice({ label, choices, value, onChange }: { label: string; choices: string[]; value: string; onChange: (value: string) => void }) {
  const data = [...new Set([...(value ? [value] : []), ...choices])].sort();
  return <Select size="xs" aria-label={label} placeholder="–" data={data} searchable clearable value={value || null} onChange={(next) => onChange(next ?? '')} />;
}
