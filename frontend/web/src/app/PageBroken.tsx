/** A page that could not be loaded or drawn: says so inside the frame, and offers to load the console again. */
import { useRouteError } from 'react-router';

import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';

export function PageBroken() {
  const error = useRouteError();
  return (
    <Panel>
      <Failed error={error instanceof Error ? error : new Error(String(error))} onRetry={() => window.location.reload()} />
    </Panel>
  );
}
