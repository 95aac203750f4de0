/** What several modules pass to each other, as plain data. Python's half is in `pyapp/engine.py` and `pyapp/browser/bridge.py`. */

/** An error as it crosses a port. */
export interface WireError {
  name: string;
  message: string;
  /** What the reader can do about it; empty where nothing is known. */
  remedy: string;
}

/** A tensor as it crosses a port: `data` in row-major order. */
export interface WireTensor {
  type: 'float32' | 'int64' | 'int32' | 'uint8' | 'bool' | 'float16' | 'float64' | 'int8' | 'uint16' | 'int16' | 'uint32' | 'uint64';
  dims: number[];
  data: Float32Array | Float64Array | BigInt64Array | BigUint64Array | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;
}

export type WireTensors = Record<string, WireTensor>;

/** What an engine is asked to be (`pyapp.engine.EngineSpec`). */
export interface EngineSpec {
  name: string;
  provider: 'wasm' | 'webgpu';
  build: 'auto' | 'wasm' | 'jspi' | 'asyncify';
  /** `stock`, `fast`, or one of the variants of `runners/gpu-fast.js`. */
  runner: string;
  threads: number;
  spinning: boolean;
  /** Of the model: `float32`, `float16` or `int8`. */
  precision: string;
  /** Whether to refuse a model of which a WebGPU engine would run a node on the CPU. */
  strict?: boolean;
  /** Sizes of the model's free dimensions, by name; 1 where none is given. */
  sizes?: Record<string, number>;
  /** Whether zeros everywhere are an answer of this model, and not that of a lost device. */
  zeros?: boolean;
}

export interface AdapterFacts {
  vendor: string;
  architecture: string;
  device: string;
  description: string;
  software: boolean;
}

/** What an engine turned out to be (`pyapp.engine.EngineFacts`), as far as its worker can tell. */
export interface EngineFacts {
  provider: string;
  build: string;
  runner: string;
  /** Why better ways of running the model were left, best first. */
  fallbacks: string[];
  threads: number;
  adapter: AdapterFacts | null;
  clock_step_ms: number;
  create_ms: number;
  inputs: string[];
  outputs: string[];
}

/** How an engine runs its session. */
export interface Runner {
  /** What it is, in a few words. */
  label: string;
  fallbacks: string[];
  readonly inputs: string[];
  readonly outputs: string[];
  /** Runs once; `compute_ms` is what `time` times. */
  run(feeds: WireTensors): Promise<{ outputs: WireTensors; compute_ms: number }>;
  /** Times runs, each from the caller's arrays until every output can be read; `bad` counts those without usable scores. */
  time(feeds: WireTensors, runs: number): Promise<{ samples: Float64Array; bad: number }>;
  /** Prints the profile to the console. */
  endProfiling(): void;
  /** Frees the session; the runner is of no use after it. */
  release(): Promise<void>;
}

/** One node of the graph as the profile saw it run. */
export interface NodeProfile {
  name: string;
  op: string;
  provider: string;
  us: number;
  /** What it gave, as in `float[1,32,20,20]`; several outputs are apart by a space. */
  shape: string;
}

/** Where the time of runs went, in milliseconds, run by run (`pyapp.engine.StageTimes`). */
export interface StageTimes {
  stages: Record<string, number[]>;
  /** How the compute stage was measured. */
  compute_from: string;
  /** What an empty dispatch and its readback take on the same device; null without one. */
  floor_ms: number[] | null;
}

/** What Python's `pyapp.verdict` says of a report: which engine to ship. */
export interface Verdict {
  /** Null where there is none to name. */
  engine: string | null;
  decided: boolean;
  sentence: string;
  lines: VerdictLine[];
  next_steps: string[];
}

/** How one engine does by one criterion. */
export interface VerdictLine {
  engine: string;
  criterion: 'answers' | 'scores' | 'stability' | 'support' | 'speed';
  status: 'pass' | 'fail' | 'unknown';
  /** The numbers that it rests on. */
  text: string;
}

/** `site.json`, written by `build_wheel.py`. */
export interface Site {
  schema: string;
  version: string;
  pyapp: string;
  pyodide: string;
  onnxruntime_web: string;
  pyodide_path: string;
  ort_path: string;
  lock_path: string;
  /** The wheels that are loaded before the page is ready. */
  boot_wheels: string[];
  /** The emulator's module. */
  ale_path: string;
  /** The emulator's ROM; null where the site was built without it. */
  rom_path: string | null;
  files: { path: string; bytes: number; sha256: string }[];
}

/** The part of onnxruntime-web's module that we use. */
export type Ort = typeof import('onnxruntime-web');

declare global {
  /** What a module of `recipes/` is exported for; `pyapp.recipe.module_text` puts it before the module's text. */
  const RECIPE: {
    engine: string;
    provider: 'wasm' | 'webgpu';
    build: string;
    runner: string;
    threads: number;
    capture: boolean;
    precision: string;
    onnxruntime_web: string;
  };

  interface GPUAdapterInfo {
    readonly isFallbackAdapter?: boolean;
  }
}
