/** What the API says when it refuses (RFC 9457 problem details), as one error type the pages can show. */

export interface FieldProblem {
  field: string;
  detail: string;
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
}

export async function readProblem(response: Response): Promise<Problem> {
  const body = await readBody(response);
  const title = body.title ?? (response.statusText || `HTTP ${response.status}`);
  return new Problem(response.status, title, body.detail ?? '', body.errors);
}

async function readBody(response: Response): Promise<ProblemBody> {
  try {
    return (await response.json()) as ProblemBody;
  } catch {
    return {};
  }
}
