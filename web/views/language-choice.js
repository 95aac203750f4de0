import { display, keepLanguage, keptLanguage, LANGUAGES, preferred } from '../language.js';
import { byId } from './dom.js';

/** @typedef {import('../language.js').Language} Language */

/** The switch between languages, which is in the page from the start. */
export function languageChoice() {
  const root = byId('language');
  const said = byId('language-said');
  /** @type {Map<Language, HTMLButtonElement>} */
  const buttons = new Map(LANGUAGES.map((language) => [language, /** @type {HTMLButtonElement} */ (root.querySelector(`[lang="${language}"]`))]));
  const speak = async (/** @type {Language} */ language) => {
    said.textContent = '';
    try {
      await display.speak(language);
    } catch (error) {
      said.textContent = `The language could not be loaded: ${/** @type {Error} */ (error).message}. Check the connection and try again.`;
      await display.speak('en');
    }
    for (const [name, button] of buttons) button.setAttribute('aria-pressed', String(name === display.language));
  };
  for (const [language, button] of buttons) {
    button.addEventListener('click', () => {
      keepLanguage(language);
      leaveAddress();
      void speak(language);
    });
  }
  const asked = new URLSearchParams(location.search).get('lang');
  void speak(preferred(asked, keptLanguage(), navigator.languages));
}

/** What was just chosen must not lose against the address when the page is loaded again. */
function leaveAddress() {
  const address = new URL(location.href);
  if (!address.searchParams.has('lang')) return;
  address.searchParams.delete('lang');
  history.replaceState(null, '', `${address.pathname}${address.search.replaceAll('%2C', ',')}${address.hash}`);
}
