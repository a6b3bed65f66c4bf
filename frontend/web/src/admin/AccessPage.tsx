/** Who may what: users and their roles for fleet admins, team leads for quota admins, and one's own tokens for everybody. */
import { useTranslation } from 'react-i18next';

import { useMay } from '../api/me.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { commandsOfTokens, commandsOfUsers } from './commands.ts';
import { Leads } from './Leads.tsx';
import { SecondFactor } from './SecondFactor.tsx';
import { Tokens } from './Tokens.tsx';
import { Users } from './Users.tsx';
import classes from './admin.module.css';

export default function AccessPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const may = useMay('grant');
  return (
    <>
      <PageHeader title={t('deferred:access.title')}>
        <CopyAs commands={may ? commandsOfUsers() : commandsOfTokens()} />
      </PageHeader>
      <div className={classes['stack']}>
        {may ? <Users /> : <Panel title={t('deferred:access.users')}>{t('deferred:access.notYours')}</Panel>}
        <Leads />
        <Tokens />
        <SecondFactor />
      </div>
    </>
  );
}
