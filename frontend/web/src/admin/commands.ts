/** What administrators look at and do, over REST and on the command line; kubectl has no words for it. */
import { type Commands, convoy, curl, listOf } from '../ui/commands.ts';

export const commandsOfAudit = (query: Record<string, string | number>): Commands => ({ curl: curl(listOf('audit/', query)) });

export const commandsOfUsers = (): Commands => ({ curl: curl('users/') });

export const commandsOfTokens = (): Commands => ({ curl: curl('tokens/') });

export const commandsToGrant = (body: { user: string; role: string; namespace: string }): Commands => ({
  curl: curl('grants/', 'POST', body),
});

export const commandsToRevoke = (id: number): Commands => ({ curl: curl(`grants/${id}/`, 'DELETE') });

/** A password is asked for there, and stands in no command. */
export const commandsOnUser = (verb: 'create' | 'disable' | 'enable' | 'password' | 'revoke-tokens', name: string): Commands => ({
  cli: convoy('user', verb, name),
});

export const commandsToUnlead = (user: string, path: string): Commands => ({ cli: convoy('user', 'unlead', user, path) });

export const commandsOfSystem = (): Commands => ({ curl: curl('system/') });
