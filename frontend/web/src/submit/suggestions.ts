/**
 * What is offered while a manifest is typed: the fields and values the server's schemas have where the cursor is, without
 * those that are written. Knows where the cursor is from `position.ts`, and no kind by name.
 */
import {
  type Completion,
  type CompletionSource,
  insertCompletionText,
  pickedCompletion,
  startCompletion,
} from '@codemirror/autocomplete';
import type { EditorView } from '@codemirror/view';

import type { KnownKind, SchemaField, SchemaPlace } from '../api/types.ts';
import { type Position, positionAt } from './position.ts';

export interface Vocabulary {
  kinds: () => Promise<readonly KnownKind[]>;
  place: (apiVersion: string, kind: string, path: readonly string[]) => Promise<SchemaPlace>;
}

const WORD = /^[\w./-]*$/;
/** What a manifest begins with, before anybody knows its kind. */
const HEAD = ['apiVersion', 'kind'].map((name): SchemaField => ({ name, type: 'string', description: '', required: true }));

/** `required` is the translated mark of a required field. */
export function suggestFrom(vocabulary: Vocabulary, required: string): CompletionSource {
  return async ({ state, pos, explicit }) => {
    const position = positionAt(state.doc.toString(), pos);
    const blank = position?.from === pos && position.takes === 'key';
    if (!position || (blank && !explicit)) return null;
    const line = state.doc.lineAt(pos);
    const rest = line.text.slice(pos - line.from);
    const word = /^[\w./-]*/.exec(rest)?.[0] ?? '';
    const followed = /^\s*:/.test(rest.slice(word.length));
    const key = (field: SchemaField) => ofField(field, required, followed ? field.name : written(field, position.from - line.from));
    // A server that does not answer is reported elsewhere: here there is nothing to offer then.
    const options = await offered(vocabulary, position, key).catch(() => []);
    return options.length > 0 ? { from: position.from, to: pos + word.length, options, validFor: WORD } : null;
  };
}

async function offered(vocabulary: Vocabulary, position: Position, key: (field: SchemaField) => Completion): Promise<Completion[]> {
  const { apiVersion, kind, path, takes, present } = position;
  const kinds = await vocabulary.kinds();
  if (takes === 'value' && path.length === 1 && path[0] === 'apiVersion') return versions(kinds, kind).map((label) => ofValue(label));
  if (takes === 'value' && path.length === 1 && path[0] === 'kind') return namesOf(kinds, apiVersion);
  const known = kinds.some((each) => each.api_version === apiVersion && each.kind === kind);
  if (!known && path.length > 0) return [];
  const place = known ? await vocabulary.place(apiVersion, kind, path) : { fields: HEAD, choices: [] };
  const fields = takes === 'value' ? [] : place.fields.filter(({ name }) => !present.includes(name));
  const choices = takes === 'key' ? [] : place.choices;
  return [...fields.map(key), ...choices.map((label) => ofValue(label))];
}

/** Those of the kind that is written, or of all. */
function versions(kinds: readonly KnownKind[], kind: string): string[] {
  const own = kinds.filter((each) => each.kind === kind);
  return [...new Set((own.length > 0 ? own : kinds).map(({ api_version }) => api_version))];
}

/** Those of the version that is written, or all. */
function namesOf(kinds: readonly KnownKind[], apiVersion: string): Completion[] {
  const own = kinds.filter(({ api_version }) => api_version === apiVersion);
  return (own.length > 0 ? own : kinds).map(({ kind, api_version, description }) => ({ ...ofValue(kind, api_version), info: description }));
}

function ofValue(label: string, detail = ''): Completion {
  return { label, detail, type: 'enum' };
}

function ofField({ name, type, description, required }: SchemaField, mark: string, text: string): Completion {
  return {
    label: name,
    detail: required ? `${type} · ${mark}` : type,
    type: 'property',
    boost: required ? 1 : 0,
    apply: (view, completion, from, to) => insert(view, completion, text, from, to),
    ...(description ? { info: description } : {}),
  };
}

/** A field as it is begun: its value beside it, or in lines of their own. */
function written({ name, type }: SchemaField, column: number): string {
  const below = `\n${' '.repeat(column + 2)}`;
  return type === 'object' ? `${name}:${below}` : type === 'array' ? `${name}:${below}- ` : `${name}: `;
}

/** And on with what comes next. */
function insert(view: EditorView, completion: Completion, text: string, from: number, to: number): void {
  view.dispatch({ ...insertCompletionText(view.state, text, from, to), annotations: pickedCompletion.of(completion) });
  startCompletion(view);
}
