/** The fields people change most, of every job in the file. It keeps nothing: what it shows is read from the text. */
import { NumberInput, TextInput } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { Panel } from '../ui/Panel.tsx';
import { type Field, type JobForm, readForms, type RoleField, withField, withValue } from './manifest.ts';
import classes from './FormPanel.module.css';

interface Props {
  text: string;
  onChange: (text: string) => void;
}

export function FormPanel({ text, onChange }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const forms = readForms(text);
  return (
    <Panel title={t('deferred:submit.form')}>
      {forms.length === 0 && <p className="cv-soft">{t('deferred:submit.noForm')}</p>}
      {forms.map((form) => (
        <fieldset key={form.index} className={classes['job']}>
          <legend className="cv-hidden">{`${form.kind} ${form.name}`}</legend>
          <JobFields form={form} text={text} onChange={onChange} />
          {form.roles.map((role, i) => (
            <RoleFields
              key={i}
              role={role}
              onField={(field, value) => onChange(withField(text, form, role, field, value))}
            />
          ))}
        </fieldset>
      ))}
    </Panel>
  );
}

function JobFields({ form, text, onChange }: Props & { form: JobForm }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <div className={classes['head']}>
      {(['name', 'namespace'] as const).map((key) => (
        <TextInput
          key={key}
          size="xs"
          label={t(`deferred:submit.${key}`)}
          value={form[key]}
          placeholder={key === 'namespace' ? 'default' : ''}
          onChange={({ currentTarget: { value } }) => onChange(withValue(text, form.index, ['metadata', key], value))}
        />
      ))}
      <span className={classes['kind']}>{form.kind}</span>
    </div>
  );
}

function RoleFields({ role, onField }: { role: RoleField; onField: (field: Field, value: string | number) => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const number = (field: 'replicas' | 'gpus', value: number) => (
    <NumberInput
      size="xs"
      min={0}
      allowDecimal={false}
      allowNegative={false}
      clampBehavior="strict"
      max={100_000}
      label={t(`deferred:submit.${field}`)}
      value={value}
      onChange={(next) => typeof next === 'number' && next !== value && onField(field, next)}
    />
  );
  return (
    <div className={classes['role']} role="group" aria-label={role.name}>
      <h3>{role.name}</h3>
      <div className={classes['amounts']}>
        {role.replicas ? number('replicas', role.replicas.value) : <span />}
        {number('gpus', role.gpus)}
        {(['cpu', 'memory'] as const).map((field) => (
          <TextInput
            key={field}
            size="xs"
            label={t(`deferred:submit.${field}`)}
            value={role[field]}
            onChange={({ currentTarget: { value } }) => onField(field, value)}
          />
        ))}
      </div>
      <TextInput
        size="xs"
        label={t('deferred:submit.image')}
        value={role.image}
        onChange={({ currentTarget: { value } }) => onField('image', value)}
      />
    </div>
  );
}
