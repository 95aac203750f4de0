/** The parts of CodeMirror that our editor uses; the build bundles them with their dependencies. */
export { autocompletion, completionKeymap } from '@codemirror/autocomplete';
export { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
export { python } from '@codemirror/lang-python';
export { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
export { EditorState, Prec } from '@codemirror/state';
export { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
export { tags } from '@lezer/highlight';
