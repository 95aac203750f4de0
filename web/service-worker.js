/**
 * Answers for the site from one whole version of it, which it keeps, with a network or without (docs/decisions/0027-offline.md).
 *
 * Registered as `service-worker.js?isolate` it keeps nothing, and gives answers the headers of isolation: for a host that
 * cannot send them.
 */

/**
 * The build puts them in: the version, a digest of the rules for headers, and every file's path and SHA-256 in base64.
 * @type {{version: string, rules: string, files: [string, string][]}}
 */
const SITE = { version: '', rules: '', files: [] };

/** The page holds it while it boots or measures; nothing is fetched then. */
const QUIET = 'pyapp-quiet';
const AT_ONCE = 4;
const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

const worker = /** @type {any} */ (self);
/** @type {string} */
const root = worker.registration.scope;
const isolates = new URL(location.href).searchParams.has('isolate');
const hashes = new Map(SITE.files);
// Other sites may have the same origin.
const prefix = `pyapp ${root} `;
const cacheName = prefix + SITE.version;

/** Where a content is kept, whatever its path was. @param {string} sha256 */
const keyOf = (sha256) => `${root}kept/${SITE.rules}/${encodeURIComponent(sha256)}`;

worker.addEventListener('install', (/** @type {any} */ event) => event.waitUntil(isolates ? worker.skipWaiting() : install()));
worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(activate()));
worker.addEventListener('message', (/** @type {MessageEvent} */ { data }) => {
  if (data === 'activate') void worker.skipWaiting();
});
worker.addEventListener('fetch', (/** @type {any} */ event) => {
  const { method, url } = /** @type {Request} */ (event.request);
  if (method === 'GET' && url.startsWith(root)) event.respondWith(answer(event.request));
});

async function install() {
  try {
    const cache = await caches.open(cacheName);
    const left = [...SITE.files];
    const some = async () => {
      for (let file = left.pop(); file; file = left.pop()) {
        const [path, sha256] = file;
        await navigator.locks.request(QUIET, { mode: 'shared' }, () => keep(cache, path, sha256));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, some));
  } catch (error) {
    await caches.delete(cacheName);
    for (const client of await worker.clients.matchAll({ includeUncontrolled: true })) client.postMessage({ notKept: String(error) });
    throw error;
  }
  // What keeps nothing is no version that somebody might want to stay with.
  if (worker.registration.active?.scriptURL.endsWith('?isolate')) await worker.skipWaiting();
}

/**
 * Takes a file over from an older version, or fetches it; what is not the file that it should be is an error.
 * @param {Cache} cache
 * @param {string} path
 * @param {string} sha256
 */
async function keep(cache, path, sha256) {
  const key = keyOf(sha256);
  const known = await caches.match(key);
  if (known) return cache.put(key, known);
  // Hosts redirect from index.html. What lies at the root has no version in its path, so a browser's copy may be an old one.
  const address = root + (path === 'index.html' ? '' : path);
  const ask = (/** @type {RequestCache} */ mode) => fetch(address, { integrity: `sha256-${sha256}`, cache: mode });
  // What came wrong once may be kept for as long as the right one.
  const response = await ask(path.includes('/') ? 'default' : 'no-cache').catch(() => ask('reload'));
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return cache.put(key, isolated(response));
}

async function activate() {
  const old = (await caches.keys()).filter((key) => key.startsWith(prefix) && key !== cacheName);
  if (!isolates) await Promise.all(old.map((key) => caches.delete(key)));
  await worker.clients.claim();
}

/** @param {Request} request @returns {Promise<Response>} */
async function answer(request) {
  const path = request.url.slice(root.length).replace(/[?#].*/, '') || 'index.html';
  const sha256 = isolates ? undefined : hashes.get(path);
  const kept = sha256 && (await caches.match(keyOf(sha256), { cacheName }));
  // A path that is none of this version's is not answered from another one: it has that one's name in it.
  return kept || isolated(await fetch(request));
}

/**
 * A copy that has no address of its own, for its modules import from where they are asked for, and no encoding, which is undone.
 * @param {Response} response
 */
function isolated(response) {
  if (response.type !== 'basic') return response;
  const headers = new Headers(response.headers);
  for (const header of ['Content-Encoding', 'Content-Length']) headers.delete(header);
  for (const [header, value] of Object.entries(ISOLATION)) if (!headers.has(header)) headers.set(header, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
