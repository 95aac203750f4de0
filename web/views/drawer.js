/**
 * A section of the page that can be drawn over the rest of it, to be used beside what the rest shows.
 * @param {HTMLElement} section
 * @param {HTMLElement} handle the button that draws it
 */
export function drawer(section, handle) {
  const draw = (/** @type {boolean} */ open) => {
    section.classList.toggle('drawer', open);
    handle.setAttribute('aria-expanded', String(open));
    handle.textContent = open ? 'Put Python back' : 'Python';
    if (open) section.querySelector('h2')?.focus();
    else handle.focus();
  };
  handle.addEventListener('click', () => draw(!section.classList.contains('drawer')));
  section.addEventListener('keydown', (event) => {
    // In the editor and the prompt, Escape lets Tab leave.
    if (event.key === 'Escape' && event.target instanceof Element && event.target.matches('h2, button, select')) draw(false);
  });
}
