/** CodeMirror set up for YAML in the console's colours. Knows nothing of manifests. */
import { acceptCompletion, autocompletion, type CompletionSource } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--cv-info)' },
  { tag: [tags.string, tags.content], color: 'var(--cv-text)' },
  { tag: [tags.number, tags.bool, tags.keyword], color: 'var(--cv-good)' },
  { tag: [tags.comment, tags.meta], color: 'var(--cv-text-soft)' },
  { tag: tags.punctuation, color: 'var(--cv-text-soft)' },
]);

const look = EditorView.theme({
  '&': { height: '100%', color: 'var(--cv-text)', backgroundColor: 'var(--cv-surface)', fontSize: '12.5px' },
  '&.cm-focused': { outline: '2px solid var(--cv-used)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--cv-mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--cv-text)', padding: '10px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--cv-text)' },
  '.cm-gutters': { backgroundColor: 'var(--cv-raised)', color: 'var(--cv-text-soft)', border: '0' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--cv-hover)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--cv-selected)',
  },
  '.cm-tooltip': { backgroundColor: 'var(--cv-surface)', color: 'var(--cv-text)', border: '1px solid var(--cv-line-strong)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--cv-mono)', fontSize: '12.5px', maxHeight: '16em' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { display: 'flex', gap: '2em', padding: '2px 8px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--cv-selected)',
    color: 'var(--cv-selected-text)',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '650' },
  '.cm-completionDetail': { marginLeft: 'auto', color: 'var(--cv-text-soft)', fontStyle: 'normal' },
  '.cm-tooltip.cm-completionInfo': { padding: '6px 10px', maxWidth: '320px', fontSize: '12.5px', lineHeight: '1.45' },
});

interface Options {
  root: ShadowRoot;
  label: string;
  text: string;
  /** Completions offered while typing, and the accessible name of their list. */
  suggest: CompletionSource;
  suggestions: string;
  onChange: (text: string) => void;
}

export function createEditor({ root, label, text, suggest, suggestions, onChange }: Options): EditorView {
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      lintGutter(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      yaml(),
      syntaxHighlighting(colours),
      look,
      autocompletion({ override: [suggest], icons: false }),
      EditorState.phrases.of({ Completions: suggestions }),
      // A list that scrolls must be within reach of the keyboard.
      EditorView.updateListener.of(({ view }) => {
        view.dom.querySelector('.cm-tooltip-autocomplete > ul')?.setAttribute('tabindex', '0');
      }),
      // Escape, then Tab, leaves the editor: Tab alone indents.
      keymap.of([{ key: 'Tab', run: acceptCompletion }, ...defaultKeymap, ...historyKeymap, ...lintKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
    ],
  });
  return new EditorView({ state, parent: root, root });
}
