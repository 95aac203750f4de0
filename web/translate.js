/**
 * English sentences into another language, by a catalogue of texts and of templates with named placeholders.
 *
 * A text that the catalogue does not have as a whole is taken apart: into sentences, then clauses, then what stands in brackets. A placeholder's name
 * says what it catches:
 * - `{n}`, one letter: a word or a number;
 * - `{reason}` and the other names of SENTENCES: whatever stands there, which must be translated itself;
 * - `{engines}`, a plural: a list; `{suite}`, any other name: what holds no comma, semicolon, colon or end of a sentence;
 * - `{_s}`, with an underscore: an ending or a verb's form that the other language does without.
 */

const SENTENCES = new Set(['message', 'reason', 'remedy', 'text', 'warning', 'what']);
const UNITS = new Set(['ms', 'kB', 'MB', 'GiB', 'dB', 'UTC', 'ULP']);
const MOST_CACHED = 4_000;
/** Nothing that the page says by itself is longer. */
const MOST_CHARACTERS = 4_000;
/** How deep sentences may hold sentences. */
const MOST_DEPTH = 8;
const WIDE = /** @type {Record<string, string>} */ ({ '.': '。', ',': '，', ';': '；', ':': '：' });
const CLAUSES = ['; ', ': ', ', '];

/** @typedef {{key: string, pattern: RegExp, names: string[], value: string, rarest: string, weight: number}} Template */

export class Translator {
  /** @type {Map<string, [string, string]>} */
  #exact = new Map();
  /** @type {Template[]} */
  #templates = [];
  /** @type {Map<string, string>} */
  #cache = new Map();
  #depth = 0;
  /** Hears of each text that nothing translates. @type {(text: string) => void} */
  onMissing = () => {};
  /** Hears which entry of the catalogue was of use. @type {(key: string) => void} */
  onUse = () => {};

  /** @param {Record<string, Record<string, string>>} catalogue by room, English to the other language */
  constructor(catalogue) {
    for (const room of Object.values(catalogue)) {
      for (const [key, value] of Object.entries(room)) {
        const [text, shown] = [key.replace(/\.$/, ''), value.replace(/。$/, '')];
        if (/\{\w+\}/.test(key)) this.#templates.push(compiled(key, text, shown));
        else this.#exact.set(text, [shown, key]);
      }
    }
    this.#templates.sort((a, b) => b.weight - a.weight);
  }

  /** @param {string} text as shown in English, with whatever space is around it */
  translate(text) {
    if (!/[A-Za-z]{2}/.test(text) || text.length > MOST_CHARACTERS) return text;
    const known = this.#cache.get(text);
    if (known !== undefined) return known;
    // Axes of charts have arrows, which stay where they are.
    const [, before, core, after] = /** @type {string[]} */ (/^([\s↑→]*)([\s\S]*?)([\s↑→]*)$/.exec(text));
    const found = this.#whole(core.replaceAll(/\s+/g, ' '));
    const shown = found === null ? text : tidied(`${before.replaceAll(/\s+/g, ' ')}${found}${after.replaceAll(/\s+/g, ' ')}`, text.includes('\u00a0'));
    if (found === null) this.#missing(core);
    // What is said once is said again, but a page that lives long says much.
    if (this.#cache.size >= MOST_CACHED) this.#cache.clear();
    this.#cache.set(text, shown);
    return shown;
  }

  /** @param {string} text @returns {string | null} null where nothing of it is known */
  #whole(text) {
    if (this.#depth > MOST_DEPTH) return null;
    this.#depth++;
    try {
      return this.#phrase(text) ?? this.#framed(text) ?? this.#apart(text);
    } finally {
      this.#depth--;
    }
  }

  /** @param {string} text one text or template of the catalogue, with or without its full stop */
  #phrase(text) {
    const bare = text.replace(/\.$/, '');
    const end = bare === text ? '' : '。';
    const exact = this.#exact.get(bare);
    if (exact) {
      this.onUse(exact[1]);
      return exact[0] + end;
    }
    // Each sentence by itself comes before a template that might reach over several.
    if (/[.!?…] \S/.test(bare)) {
      const sentences = this.#joined(text.split(/(?<=[.!?…]) (?=\S)/), '');
      if (sentences !== null) return sentences;
    }
    for (const template of this.#templates) {
      const caught = bare.includes(template.rarest) && template.pattern.exec(bare);
      if (caught) {
        this.onUse(template.key);
        return filled(template, caught.slice(1).map((part, i) => this.#caught(part, template.names[i]))) + end;
      }
    }
    return null;
  }

  /** @param {string} part @param {string} name of the placeholder that caught it */
  #caught(part, name) {
    if (!/[A-Za-z]{2}/.test(part)) return part;
    const found = this.#whole(part);
    if (found !== null) return found;
    if (SENTENCES.has(name)) this.#missing(part);
    return name.endsWith('s') && name.length > 1 ? part.replaceAll(', ', '、').replaceAll(' and ', ' 和 ') : part;
  }

  /** @param {string} text with a sign before or after it, which becomes a wide one; or in brackets */
  #framed(text) {
    const [, first, inner, last] = /** @type {string[]} */ (/^([,;:.] )?(.*?)([.,;:])?$/s.exec(text));
    if ((first || last) && inner) {
      const found = this.#whole(inner);
      if (found !== null) return (first ? WIDE[first[0]] : '') + found + (last ? WIDE[last] : '');
    }
    const brackets = /^(?:(.+?) )?\((.*)\)$/.exec(text);
    if (!brackets) return null;
    const [, before = '', within] = brackets;
    const parts = [before, within].map((part) => part && this.#whole(part));
    if (!parts.some(Boolean)) return null;
    const [outside, inside] = parts.map((part, i) => part || this.#kept([before, within][i]));
    return `${outside}（${inside}）`;
  }

  /** @param {string} text */
  #apart(text) {
    for (const sign of CLAUSES) {
      const at = text.indexOf(sign);
      if (at < 0) continue;
      const found = this.#joined(sign === ': ' ? [text.slice(0, at), text.slice(at + 2)] : text.split(sign), WIDE[sign[0]]);
      if (found !== null) return found;
    }
    return null;
  }

  /** @param {string[]} parts @param {string} sign @returns {string | null} null where none of them is known */
  #joined(parts, sign) {
    const found = parts.map((part) => this.#whole(part));
    return found.some((part) => part !== null) ? found.map((part, i) => part ?? this.#kept(parts[i])).join(sign) : null;
  }

  /** @param {string} part */
  #kept(part) {
    this.#missing(part);
    return part;
  }

  /** One word may be a name. @param {string} text */
  #missing(text) {
    const words = text.split(/[^\w.-]+/).filter((word) => /^[A-Za-z]{2,}\.?$/.test(word) && !UNITS.has(word));
    if (words.length > 1) this.onMissing(text);
  }
}

/** @param {string} key @param {string} text @param {string} value @returns {Template} */
function compiled(key, text, value) {
  const parts = text.split(/\{(\w+)\}/);
  const literals = parts.filter((_, i) => i % 2 === 0);
  const names = parts.filter((_, i) => i % 2 === 1);
  const source = parts.map((part, i) => (i % 2 ? `(${reach(part)})` : part.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'))).join('');
  return {
    key,
    pattern: new RegExp(`^${source}$`),
    names,
    value,
    rarest: literals.reduce((longest, part) => (part.length > longest.length ? part : longest), ''),
    weight: literals.join('').length,
  };
}

/** @param {string} name @returns {string} what a placeholder of this name may catch */
function reach(name) {
  if (name.startsWith('_')) return '[a-z]*';
  if (name.length === 1) return '\\S+?';
  if (SENTENCES.has(name)) return '.+?';
  return name.endsWith('s') ? '(?:(?![.;:!?] ).)+?' : '(?:(?![,.;:!?] ).)+?';
}

/** @param {Template} template @param {string[]} caught */
function filled({ value, names }, caught) {
  return value.replaceAll(/\{(\w+)\}/g, (whole, name) => caught[names.indexOf(name)] ?? whole);
}

/** Chinese has no space beside its own signs, nor between its own characters. @param {string} text @param {boolean} tied whether numbers keep to their units */
function tidied(text, tied) {
  const close = text.replaceAll(/(?<=[\u3001-\uff65]) (?=[\u3001-\uff65])/g, '').replaceAll(/ ?([，。；：（）「」、？]) ?/g, '$1').replaceAll(/。+(?=[。？！])/g, '');
  return tied ? close.replaceAll(/(?<=\d) (?=%|ms\b)/g, '\u00a0') : close;
}
