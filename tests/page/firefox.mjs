/**
 * A headless Firefox for a program: a JSON request on each line of standard input, its JSON answer on standard output.
 *
 * Through WebDriver BiDi, since no package registry has a geckodriver. `firefox.py` is the other side.
 */
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';

const [executablePath, downloads] = process.argv.slice(2);

const browser = await puppeteer.launch({
  browser: 'firefox',
  executablePath,
  headless: true,
  timeout: 120_000,
  protocolTimeout: 600_000,
  defaultViewport: { width: 1280, height: 1600 },
  extraPrefsFirefox: {
    'dom.webgpu.enabled': true,
    'browser.download.folderList': 2,
    'browser.download.dir': downloads,
    'browser.helperApps.neverAsk.saveToDisk': 'application/json,text/csv',
  },
});
const page = await browser.newPage();

/** @param {string} css @param {string} text what the element's text begins with; nothing: any */
async function find(css, text) {
  for (const element of await page.$$(css)) {
    if (await element.evaluate((one, wanted) => one.checkVisibility() && one.textContent.trim().startsWith(wanted), text)) return element;
  }
  throw new Error(`the page shows no ${css} with the text ${JSON.stringify(text)}`);
}

/** @type {Record<string, (...args: any[]) => Promise<unknown>>} */
const verbs = {
  version: () => browser.version(),
  open: async (url) => void (await page.goto(url)),
  // As an expression, not as a function made in the page: that would be against the page's own policy.
  run: (body, argument) => page.evaluate(`(async (argument) => { ${body} })(${JSON.stringify(argument)})`),
  click: async (css, text) => (await find(css, text)).click(),
  type: (text) => page.keyboard.type(text),
  hold: (key, ms) => page.keyboard.press(key, { delay: ms }),
  upload: async (css, path) => {
    const field = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.$(css));
    await field.uploadFile(path);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...args] = JSON.parse(line);
  const answer = await verbs[verb](...args).then(
    (value) => ({ value: value ?? null }),
    (error) => ({ error: String(error.message ?? error) }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
