/** Which resources have a bar: one is the rule, several stand below each other. */
import { useTranslation } from 'react-i18next';

import { resourceName } from './QuotaLines.tsx';
import classes from './ResourcePicker.module.css';

interface Props {
  resources: string[];
  shown: string[];
  onShow: (shown: string[]) => void;
}

export function ResourcePicker({ resources, shown, onShow }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const toggle = (resource: string) => {
    const next = resources.filter((each) => (each === resource) !== shown.includes(each));
    if (next.length > 0) onShow(next);
  };
  return (
    <div role="group" aria-label={t('deferred:quotas.resources')} className={classes['picker']}>
      {resources.map((resource) => (
        <button key={resource} type="button" aria-pressed={shown.includes(resource)} title={resource} onClick={() => toggle(resource)}>
          {resourceName(resource)}
        </button>
      ))}
    </div>
  );
}
