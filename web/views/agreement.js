import { count, h, scientific, table } from './dom.js';

const COLUMNS = ['', 'output', 'agree', 'by', 'max |Δ|', 'max relative', 'max ULP', 'cosine', 'SNR', 'worst element'];

/** Each output of each engine against the reference. @param {any[]} entries `AgreementEntry`s of the report */
export function agreement(entries) {
  const [{ rtol, atol }] = entries;
  return h(
    'div',
    {},
    table('Outputs against the reference', COLUMNS, entries.map(row)),
    h('p', { class: 'note' }, `A float may differ by atol ${atol} + rtol ${rtol} × |reference|; where the largest score has to be the same, the scores have to be that near as well. Other numbers have to be equal.`),
  );
}

/** @param {any} entry @returns {(Node | string)[]} */
function row(entry) {
  const { engine, output, dtype, criterion, agree, cases, passed, failures, worst_case, worst_index } = entry;
  const floats = dtype.startsWith('float');
  return [
    engine,
    h('code', {}, output),
    h('strong', { class: passed ? 'good' : 'bad' }, `${passed ? '✓' : '✗'} ${agree} / ${cases}`),
    criterion === 'argmax' ? 'largest score' : floats ? 'tolerance' : 'equality',
    scientific(entry.max_abs),
    scientific(entry.max_rel),
    entry.max_ulp === null ? '–' : entry.max_ulp < 1e6 ? count(entry.max_ulp) : scientific(entry.max_ulp),
    entry.cosine === null ? '–' : entry.cosine.toFixed(6),
    noise(entry),
    failures.length ? `case ${failures[0].case}: ${failures[0].failure}` : entry.max_abs === 0 ? 'none' : `case ${worst_case}, [${worst_index.join(', ')}]`,
  ];
}

/** @param {any} entry */
function noise({ snr_db, max_abs }) {
  if (snr_db !== null) return `${snr_db.toFixed(0)} dB`;
  return max_abs === 0 ? '∞' : '–';
}
