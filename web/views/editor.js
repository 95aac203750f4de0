import { needed } from '../download.js';
import { h } from './dom.js';

/** @typedef {import('../python-host.js').PythonHost} PythonHost */

/**
 * An editor for Python. It lives in a shadow root: there its styles are constructed sheets, which the content security policy allows.
 *
 * Ctrl-Enter runs all of it, Shift-Enter the selection or the current line. Escape, then Tab leaves it.
 */
export class Editor {
  #view;

  /** @param {any} view CodeMirror's */
  constructor(view) {
    this.#view = view;
  }

  /**
   * Loads CodeMirror and opens an editor.
   * @param {HTMLElement} root
   * @param {{python: PythonHost, run: (source: string) => void, changed: (text: string) => void, text: string}} options
   */
  static async open(root, { python, run, changed, text }) {
    /** @type {typeof import('../vendor/editor.js')} */
    const cm = await needed(new URL('../vendor/editor.js', import.meta.url));
    const host = h('div', { class: 'editor' });
    root.replaceChildren(host);
    const shadow = host.attachShadow({ mode: 'open' });
    /** @type {Editor} */
    let editor;
    const keys = [
      { key: 'Mod-Enter', run: () => (run(editor.text), true) },
      { key: 'Shift-Enter', run: () => (run(editor.chosen), true) },
    ];
    const complete = async (/** @type {any} */ context) => {
      const word = context.matchBefore(/[\w.]+/);
      if (!word && !context.explicit) return null;
      const { words, start } = await python.complete(context.state.sliceDoc(context.state.doc.lineAt(context.pos).from, context.pos));
      if (!words.length) return null;
      return { from: context.state.doc.lineAt(context.pos).from + start, options: words.map((label) => ({ label })), validFor: /^[\w.]*$/ };
    };
    const { tags } = cm;
    const colors = cm.HighlightStyle.define([
      { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: 'var(--engine-3)' },
      { tag: [tags.string, tags.special(tags.string)], color: 'var(--engine-1)' },
      { tag: [tags.number, tags.bool, tags.null], color: 'var(--engine-2)' },
      { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
      { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: 'var(--engine-0)' },
    ]);
    const theme = cm.EditorView.theme({
      '&': { color: 'var(--ink)', backgroundColor: 'var(--paper)', fontSize: '0.92rem', maxHeight: '28rem' },
      '.cm-scroller': { fontFamily: 'var(--mono)', overflow: 'auto', minHeight: '9rem' },
      '.cm-content': { caretColor: 'var(--ink)' },
      '.cm-cursor': { borderLeftColor: 'var(--ink)' },
      '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--soft)', border: 'none' },
      '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, currentColor 6%, transparent)' },
      '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'color-mix(in srgb, var(--accent) 28%, transparent)' },
      '.cm-tooltip': { backgroundColor: 'var(--card)', color: 'var(--ink)', borderColor: 'var(--line)' },
    });
    const view = new cm.EditorView({
      parent: shadow,
      root: shadow,
      state: cm.EditorState.create({
        doc: text,
        extensions: [
          cm.Prec.highest(cm.keymap.of(keys)),
          cm.lineNumbers(),
          cm.history(),
          cm.drawSelection(),
          cm.indentOnInput(),
          cm.indentUnit.of('    '),
          cm.bracketMatching(),
          cm.highlightActiveLine(),
          cm.python(),
          cm.syntaxHighlighting(colors),
          cm.autocompletion({ override: [complete] }),
          cm.keymap.of([...cm.completionKeymap, ...cm.defaultKeymap, ...cm.historyKeymap, cm.indentWithTab]),
          cm.EditorView.contentAttributes.of({ 'aria-label': 'Python editor; Escape, then Tab leaves it' }),
          cm.EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
          theme,
        ],
      }),
    });
    editor = new Editor(view);
    return editor;
  }

  get text() {
    return this.#view.state.doc.toString();
  }

  /** Replaces the text; undo brings it back. */
  set text(/** @type {string} */ text) {
    this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } });
  }

  /** The selection, or the line that the cursor is in. */
  get chosen() {
    const { state } = this.#view;
    const { from, to, empty } = state.selection.main;
    return empty ? state.doc.lineAt(from).text : state.sliceDoc(from, to);
  }

  focus() {
    this.#view.focus();
  }
}
