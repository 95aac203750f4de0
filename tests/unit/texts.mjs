/**
 * The texts that JavaScript and HTML show, found without running them: strings and templates by a scanner that knows comments, regular expressions and
 * nested templates. A `${…}` becomes HOLE.
 */

export const HOLE = 'qq';

/**
 * @typedef {{text: string, before: string, after: string}} Found a string, and what stands before and after it
 * @param {string} source
 * @returns {Found[]}
 */
export function strings(source) {
  /** @type {Found[]} */
  const found = [];
  let at = 0;
  const skipTo = (/** @type {string} */ end) => {
    const next = source.indexOf(end, at + 2);
    at = next < 0 ? source.length : next + end.length;
  };
  const quoted = (/** @type {string} */ quote) => {
    const begin = at++;
    let text = '';
    while (source[at] !== quote) text += source[at] === '\\' ? escaped() : source[at++];
    at++;
    found.push({ text, before: source.slice(Math.max(0, begin - 160), begin), after: source.slice(at, at + 40) });
  };
  const escaped = () => {
    const letter = source[at + 1];
    if (letter === 'u') return String.fromCharCode(Number.parseInt(source.slice(at + 2, (at += 6)), 16));
    at += 2;
    return /** @type {Record<string, string>} */ ({ n: '\n', t: '\t', r: '\r', '\n': '' })[letter] ?? letter;
  };
  const template = () => {
    const begin = at++;
    let text = '';
    while (source[at] !== '`') {
      if (source[at] === '\\') text += escaped();
      else if (source.startsWith('${', at)) {
        at += 2;
        code();
        text += HOLE;
      } else text += source[at++];
    }
    at++;
    found.push({ text, before: source.slice(Math.max(0, begin - 160), begin), after: source.slice(at, at + 40) });
  };
  const regularExpression = () => {
    let inSet = false;
    for (at++; inSet || source[at] !== '/'; at++) {
      if (source[at] === '\\') at++;
      else if (source[at] === '[') inSet = true;
      else if (source[at] === ']') inSet = false;
    }
    at++;
  };
  const code = () => {
    let depth = 0;
    while (at < source.length) {
      const letter = source[at];
      if (source.startsWith('//', at)) skipTo('\n');
      else if (source.startsWith('/*', at)) skipTo('*/');
      else if (letter === "'" || letter === '"') quoted(letter);
      else if (letter === '`') template();
      else if (letter === '/' && /(?:^|[(,=:[!&|?{};\n]|=>|return)\s*$/.test(source.slice(Math.max(0, at - 20), at))) regularExpression();
      else {
        at++;
        if (letter === '{') depth++;
        if (letter === '}' && depth-- === 0) return;
      }
    }
  };
  code();
  return found;
}

/** What a person reads of a page's HTML. @param {string} html */
export function textsOf(html) {
  const bare = html.replaceAll(/<!--[\s\S]*?-->/g, '').replaceAll(/<code>[\s\S]*?<\/code>/g, '<code>');
  const attributes = [...bare.matchAll(/(?:aria-label|title|placeholder|alt)="([^"]*)"/g), ...bare.matchAll(/name="description" content="([^"]*)"/g)].map(([, text]) => text);
  const texts = bare.split(/<[^>]*>/).map((text) => text.replaceAll(/\s+/g, ' ').trim());
  return [...texts, ...attributes].filter((text) => /[A-Za-z]/.test(text));
}

/** Modules whose texts nobody sees, but for programmers. */
const UNSEEN = /^(?:recipes|examples|runners\/gpu-t|vendor)|^(?:wasi|translate)\.js$/;
/** Strings that are for the browser: tags, classes, names, styles, queries, code. */
const FOR_BROWSER = /(?:class|id|type|role|name|for|accept|inputmode|content|autocomplete|aria-controls|aria-current): $|(?:import|from|querySelector|querySelectorAll|closest|matches|getContext|addEventListener|\bon|setAttribute|setProperty|new URL)\(?\s?$|\.font = $/;
const CODE = /^(?:[.#:[][\w-]|<)|[{}=<>]|^\d+px|^(?:var|color-mix)\(|^[a-z\d-]+(?:, ?[a-z:[\]-]+)+$|px .*serif$|^(?:application|text)\/[a-z-]+$|^sentence |is here[:;]|^await |\b(?:const|fn|micropip)\b/;

/**
 * What a module shows: its sentences, and the words that it gives to elements as their text. Other words are not told from names.
 * @param {string} path
 * @param {string} source
 */
export function shown(path, source) {
  if (UNSEEN.test(path)) return [];
  // A table may have its rows' names as the keys of an object.
  const keys = [...source.matchAll(/^ +(\w+): '/gm)].map(([, key]) => key);
  return strings(source)
    .filter(({ text, before }) => /[A-Za-z]{2}/.test(text.replaceAll(HOLE, '')) && !FOR_BROWSER.test(before) && !CODE.test(text))
    .map(({ text }) => text)
    .concat(keys);
}
