/** An address that leads nowhere. */
import { Compass } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { Empty } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';

export function NotFound() {
  const { t } = useTranslation();
  return (
    <Panel>
      <Empty title={t('notFound.title')} icon={Compass}>
        <Link to="/fleet">{t('notFound.back')}</Link>
      </Empty>
    </Panel>
  );
}
