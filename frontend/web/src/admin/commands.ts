/** What administrators look at and do, over REST: neither kubectl nor the command line has words for it. */
import { type Commands, curl, listOf } from '../ui/commands.ts';

export const commandsOfAudit = (query: Record<string, string | number>): Commands => ({ curl: curl(listOf('audit/', query)) });

export const commandsOfUsers = (): Commands => ({ curl: curl('users/') });

export const commandsOfTokens = (): Commands => ({ curl: curl('tokens/') });

export const commandsToGrant = (body: { user: string; role: string; namespace: string }): Commands => ({
  curl: curl('grants/', 'POST', body),
});

export const commandsOfSystem = (): Commands => ({ curl: curl('system/') });
