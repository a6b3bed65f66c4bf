/** What an event says: in the reader's language, with the server's own sentence one click away where it differs. */
import { useTranslation } from 'react-i18next';

import type { JobEvent } from '../api/types.ts';
import { ServerText } from '../ui/ServerText.tsx';
import { eventWords } from './words.ts';

export function EventText({ event }: { event: JobEvent }) {
  const { t, i18n } = useTranslation();
  return (
    <div>
      {eventWords(event, { t, language: i18n.language })}
      {i18n.language !== 'en' && <ServerText text={event.message} />}
    </div>
  );
}
