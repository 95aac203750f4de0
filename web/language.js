/**
 * The page's language. Everything speaks English; what is shown is translated here, at the last moment before it is painted.
 *
 * The English text of each translated node is kept, so that the language can change with whatever is on the page.
 */
import { downloadText, needed } from './download.js';
import { publicPage } from './public-page.js';

/** @typedef {'en' | 'zh-TW'} Language */

/** @type {Language[]} */
export const LANGUAGES = ['en', 'zh-TW'];

const ATTRIBUTES = ['aria-label', 'title', 'placeholder', 'alt', 'aria-valuetext', 'content'];
/** What is in these is a program's, or the visitor's. */
const NOT_OURS = 'code, pre, noscript, script, style, textarea, [translate="no"]';
const KEY = 'pyapp.language';
const MOST_REMEMBERED = 1_000;

/** @typedef {import('./translate.js').Translator} Translator */
/** @typedef {{english: string, shown: string}} Kept */

/**
 * Which language the page begins in.
 * @param {string | null} asked in the address
 * @param {string | null} kept from an earlier visit
 * @param {readonly string[]} spoken what the browser is set to, the dearest first
 * @returns {Language}
 */
export function preferred(asked, kept, spoken) {
  for (const wanted of [asked, kept]) {
    const known = LANGUAGES.find((language) => language === wanted);
    if (known) return known;
  }
  return /^zh-(?:TW|HK|MO|Hant)\b/i.test(spoken[0] ?? '') ? 'zh-TW' : 'en';
}

class Display {
  /** @type {Language} */
  language = 'en';
  /** @type {Translator | null} null: English */
  #translator = null;
  /** @type {WeakMap<Text, Kept>} */
  #texts = new WeakMap();
  /** @type {WeakMap<Element, Map<string, Kept>>} */
  #attributes = new WeakMap();
  /** @type {MutationObserver | null} null until another language was wanted: English costs nothing */
  #observer = null;
  /** @type {Promise<Translator> | null} */
  #loading = null;

  /** Shows the page in a language, with all that is on it. @param {Language} language */
  async speak(language) {
    this.language = language;
    const translator = language === 'en' ? null : await (this.#loading ??= this.#load(language));
    // Somebody was quicker and wants another one by now.
    if (this.language !== language) return;
    this.#translator = translator;
    const root = document.documentElement;
    root.lang = language;
    if (translator && !this.#observer) {
      this.#observer = new MutationObserver((changes) => this.#follow(changes));
      this.#observer.observe(root, { subtree: true, childList: true, characterData: true, attributeFilter: ATTRIBUTES });
    }
    if (this.#observer) this.#show(root);
  }

  /** @param {Language} language */
  async #load(language) {
    try {
      /** @type {[typeof import('./translate.js'), string]} */
      const [{ Translator }, catalogue] = await Promise.all([needed(new URL('translate.js', import.meta.url)), downloadText(new URL(`languages/${language}.json`, import.meta.url))]);
      const translator = new Translator(JSON.parse(catalogue));
      translator.onMissing = remember;
      return translator;
    } catch (error) {
      this.#loading = null;
      throw error;
    }
  }

  /** @param {MutationRecord[]} changes */
  #follow(changes) {
    for (const { type, target, addedNodes, attributeName } of changes) {
      if (type === 'attributes' && attributeName) this.#attribute(/** @type {Element} */ (target), attributeName);
      else if (type === 'characterData') this.#show(target);
      else for (const node of addedNodes) this.#show(node);
    }
  }

  /** @param {Node} node with all that is in it */
  #show(node) {
    if (node instanceof Text) {
      if (!node.parentElement?.closest(NOT_OURS)) this.#text(node);
      return;
    }
    if (!(node instanceof Element) || node.closest('[translate="no"]')) return;
    this.#element(node);
    if (node.closest(NOT_OURS)) return;
    const within = document.createTreeWalker(node, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (one) => this.#meet(one));
    while (within.nextNode());
  }

  /** @param {Node} node @returns {number} whether what is in it is to be met too */
  #meet(node) {
    if (node instanceof Text) this.#text(node);
    else if (node instanceof Element) {
      if (node.matches('[translate="no"]')) return NodeFilter.FILTER_REJECT;
      this.#element(node);
      if (node.matches(NOT_OURS)) return NodeFilter.FILTER_REJECT;
    }
    return NodeFilter.FILTER_ACCEPT;
  }

  /** @param {Text} node */
  #text(node) {
    const { data } = node;
    const kept = this.#texts.get(node);
    const english = kept?.shown === data ? kept.english : data;
    const shown = this.#said(english, node.parentElement);
    if (shown !== data) node.data = shown;
    if (shown !== english) this.#texts.set(node, { english, shown });
    else if (kept) this.#texts.delete(node);
  }

  /** @param {string} english @param {Element | null} holder */
  #said(english, holder) {
    if (holder instanceof HTMLTimeElement && holder.dateTime) return moment(holder.dateTime, this.language);
    return this.#translator ? this.#translator.translate(english) : english;
  }

  /** @param {Element} element */
  #element(element) {
    for (const name of ATTRIBUTES) if (element.hasAttribute(name)) this.#attribute(element, name);
  }

  /** @param {Element} element @param {string} name */
  #attribute(element, name) {
    const value = element.getAttribute(name);
    if (value === null || (name === 'content' && element.getAttribute('name') !== 'description')) return;
    if (element.closest('[translate="no"], [aria-hidden="true"]')) return;
    const all = this.#attributes.get(element) ?? new Map();
    const kept = all.get(name);
    const english = kept?.shown === value ? kept.english : value;
    const shown = this.#translator ? this.#translator.translate(english) : english;
    if (shown !== value) element.setAttribute(name, shown);
    this.#attributes.set(element, all.set(name, { english, shown }));
  }
}

/** @param {string} text */
function remember(text) {
  const { untranslated } = publicPage;
  if (untranslated.length < MOST_REMEMBERED && !untranslated.includes(text)) untranslated.push(text);
}

/**
 * A moment as a language writes it, in UTC, for reports come from anywhere.
 * @param {string} iso
 * @param {string} language
 */
export function moment(iso, language) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const locale = language === 'en' ? 'en-GB' : language;
  return `${new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC', hour12: false }).format(date)} UTC`;
}

export const display = new Display();

/** What the browser keeps of an earlier visit; it may forbid to look. */
export function keptLanguage() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** @param {Language} language */
export function keepLanguage(language) {
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // The address can still say it.
  }
}
