/**
 * The text of manifests, edited. CodeMirror lives in a shadow root: there it makes its styles as constructed sheets, which the
 * content security policy allows, and never as <style> elements. Loaded with the page that needs it, never with the shell.
 */
import { type Diagnostic, setDiagnostics } from '@codemirror/lint';
import { EditorView } from '@codemirror/view';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useMemo, useRef } from 'react';
import { useTranslation } from 'react-i18next';

import { createEditor } from './codemirror.ts';
import type { Mark } from './manifest.ts';
import { knownKindsQuery, placeQuery } from './queries.ts';
import { suggestFrom } from './suggestions.ts';
import classes from './Editor.module.css';

interface Props {
  label: string;
  text: string;
  marks: Mark[];
  onChange: (text: string) => void;
}

export function Editor({ label, text, marks, onChange }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  /** Texts typed here and handed on, until they come back: a late echo must not take away what was typed since. */
  const echoes = useRef<string[]>([]);
  const changed = useEffectEvent((typed: string) => {
    echoes.current.push(typed);
    onChange(typed);
  });
  const first = useEffectEvent(() => text);
  const { suggest, suggestions } = useSuggestions();
  useEffect(() => {
    if (!host.current) return undefined;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' });
    const made = createEditor({ root, label, text: first(), suggest, suggestions, onChange: (next) => changed(next) });
    view.current = made;
    return () => made.destroy();
  }, [label, suggest, suggestions]);
  useEffect(() => {
    const editor = view.current;
    const echo = echoes.current.lastIndexOf(text);
    echoes.current = echoes.current.slice(echo + 1);
    if (!editor || echo >= 0 || editor.state.doc.toString() === text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
    echoes.current = [];
  }, [text]);
  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, marks.map((mark) => diagnosticOf(editor, mark))));
  }, [marks, text]);
  return <div ref={host} className={classes['editor']} />;
}

function useSuggestions() {
  const { t } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const suggest = useMemo(() => {
    const vocabulary = {
      kinds: async () => (await client.query(knownKindsQuery)).results,
      place: (apiVersion: string, kind: string, path: readonly string[]) =>
        client.query(placeQuery(apiVersion, kind, path)),
    };
    return suggestFrom(vocabulary, t('deferred:submit.required'));
  }, [client, t]);
  return { suggest, suggestions: t('deferred:submit.suggestions') };
}

function diagnosticOf(editor: EditorView, { line, column, message }: Mark): Diagnostic {
  const at = editor.state.doc.line(Math.min(Math.max(line, 1), editor.state.doc.lines));
  return { from: Math.min(at.from + column - 1, at.to), to: at.to, severity: 'error', message };
}
