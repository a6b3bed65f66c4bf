/** What the API says when it refuses (RFC 9457 problem details), as one error type the pages can show. */
import type { AskedSignature } from './passkeys.ts';

export interface FieldProblem {
  field: string;
  detail: string;
}

export interface SecondFactorWanted {
  /** What an authenticator app is set up with, where the user must do that first. */
  enrolment: { secret: string; image: string } | null;
  /** What a passkey of the user would sign instead of a code. */
  passkey: AskedSignature | null;
}

export class Problem extends Error {
  override readonly name = 'Problem';
  /** Asks for something that is shown over the page; beside what was asked it would only grow stale. */
  toldElsewhere = false;

  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly fields: FieldProblem[] = [],
    /** Of a sign-in whose password was right. */
    readonly secondFactor?: SecondFactorWanted,
  ) {
    super(detail || title);
  }
}

/** No answer, or a gateway's answer in its place. */
export class ServerAway extends Error {
  override readonly name = 'ServerAway';
}

interface ProblemBody {
  title?: string;
  detail?: string;
  errors?: FieldProblem[];
  second_factor?: string;
  enrolment?: { secret: string; image: string } | null;
  passkey?: AskedSignature | null;
}

export async function readProblem(response: Response): Promise<Problem> {
  const body = await readBody(response);
  const title = body.title ?? (response.statusText || `HTTP ${response.status}`);
  const wanted =
    body.second_factor === undefined ? undefined : { enrolment: body.enrolment ?? null, passkey: body.passkey ?? null };
  return new Problem(response.status, title, body.detail ?? '', body.errors, wanted);
}

async function readBody(response: Response): Promise<ProblemBody> {
  try {
    return (await response.json()) as ProblemBody;
  } catch {
    return {};
  }
}
