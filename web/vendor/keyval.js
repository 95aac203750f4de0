/** A small store in IndexedDB. */
export { createStore, del, get, set } from 'idb-keyval';
