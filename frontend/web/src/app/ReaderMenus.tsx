/** The reader's own choices: language, colours, account. Fetched after the frame: menus are heavy and rarely first. */
import type { Me } from '../api/types.ts';
import { AccountMenu } from './AccountMenu.tsx';
import { ColorMenu } from './ColorMenu.tsx';
import { LanguageMenu } from './LanguageMenu.tsx';

export function ReaderMenus({ me }: { me: Me }) {
  return (
    <>
      <LanguageMenu />
      <ColorMenu />
      <AccountMenu me={me} />
    </>
  );
}
