/** The reader's own choices: help, language, colours, account. Fetched after the frame: menus are heavy and rarely first. */
import type { Me } from '../api/types.ts';
import { AccountMenu } from './AccountMenu.tsx';
import { ColorMenu } from './ColorMenu.tsx';
import { HelpMenu } from './HelpMenu.tsx';
import { LanguageMenu } from './LanguageMenu.tsx';

export function ReaderMenus({ me, onKeys }: { me: Me; onKeys: () => void }) {
  return (
    <>
      <HelpMenu onKeys={onKeys} />
      <LanguageMenu />
      <ColorMenu />
      <AccountMenu me={me} />
    </>
  );
}
