/**
 * Reads onnxruntime-web's profile: which node ran on which provider, and for how long.
 *
 * onnxruntime-web prints the profile (a Chrome trace as JSON) to the console and has no other way to hand it over. So this
 * replaces the console's log in one realm, which belongs to one short-lived engine worker that does nothing else.
 */
import { AppError } from './wire.js';

/** @typedef {import('./types.d.ts').NodeProfile} NodeProfile */

const LIMIT_MS = 10_000;

/** @typedef {{cat: string, name: string, dur: number, args?: {provider?: string, node_index?: string, op_name: string, output_type_shape?: Record<string, number[]>[]}}} TraceEvent */

/**
 * Starts to listen. Call it before onnxruntime-web is imported: its build takes hold of `console.log` when it starts.
 * @returns {(endProfiling: () => void) => Promise<TraceEvent[]>} reads the profile that `endProfiling` makes the runtime
 *   print; on the WebGPU builds it comes later than that call returns
 */
export function listenForProfile() {
  let text = '';
  let heard = () => {};
  console.log = (...parts) => {
    text += `${parts.join(' ')}\n`;
    heard();
  };
  return (endProfiling) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new AppError('NoProfile', `onnxruntime-web printed no profile within ${LIMIT_MS / 1000} s`)),
        LIMIT_MS,
      );
      text = '';
      heard = () => {
        const events = parseTrace(text);
        if (!events) return;
        clearTimeout(timer);
        resolve(events);
      };
      endProfiling();
    });
}

/**
 * @param {string} text a Chrome trace, perhaps not complete yet
 * @returns {TraceEvent[] | null} null while the text is not a whole trace
 */
export function parseTrace(text) {
  const start = text.indexOf('[');
  const end = text.lastIndexOf(']');
  if (start < 0 || !text.trimEnd().endsWith(']')) return null;
  try {
    return JSON.parse(escaped(text.slice(start, end + 1)));
  } catch {
    return null; // the rest is still to come
  }
}

/**
 * onnxruntime-web 1.30 writes nodes' names as they are, with quotes, backslashes and line ends; later releases escape them.
 * @param {string} trace
 */
function escaped(trace) {
  return trace.replace(/("ph" : "X","name" :)"([^]*?)"(?=,"args" : \{["}])/g, (_, before, name) => before + JSON.stringify(name));
}

/** @param {TraceEvent[]} events @returns {NodeProfile[]} one entry a node, of its last run */
export function nodesOf(events) {
  /** @type {Map<string, NodeProfile>} */
  const nodes = new Map();
  for (const { cat, name, dur, args } of events) {
    if (cat !== 'Node' || !args?.provider) continue;
    const node = name.replace(/_kernel_time$/, '');
    nodes.set(`${args.node_index} ${node}`, { name: node, op: args.op_name, provider: args.provider, us: dur, shape: shapeOf(args.output_type_shape) });
  }
  return [...nodes.values()];
}

/** @param {Record<string, number[]>[]} [outputs] a type and its dimensions each */
function shapeOf(outputs = []) {
  return outputs.flatMap((output) => Object.entries(output).map(([type, dims]) => `${type}[${dims}]`)).join(' ');
}
