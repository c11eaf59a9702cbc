// Written by page/typescript.py from src/warpline/reports/page/contract.py; do not edit.

export type TrackKind = "gpu" | "idle" | "syncs" | "api" | "ops" | "ranges" | "python";

export type EventKind = "matmul" | "attention" | "norm" | "kernel" | "copy" | "memset" | "comm" | "graph" | "launch" | "wait" | "api_copy" | "allocate" | "api" | "op" | "range" | "python" | "module" | "sync" | "idle";

/** Rows of one kind of one thread or device, in lanes below each other. */
export interface Track {
  readonly kind: "gpu" | "idle" | "syncs" | "api" | "ops" | "ranges" | "python";
  readonly label: string;
  readonly part: number;
  readonly lanes: readonly number[];
  readonly device: number | null;
  readonly thread: number | null;
}

/** One step of the program. */
export interface Step {
  readonly name: string;
  readonly start_ns: number;
  readonly end_ns: number;
}

/** A name that rows have. */
export interface Name {
  readonly text: string;
  readonly short: string;
  readonly kind: "matmul" | "attention" | "norm" | "kernel" | "copy" | "memset" | "comm" | "graph" | "launch" | "wait" | "api_copy" | "allocate" | "api" | "op" | "range" | "python" | "module" | "sync" | "idle";
  readonly cause: string | null;
  readonly identity: number | null;
}

/** What a kernel's name shows, and how close its calls come to the roofline. */
export interface Identity {
  readonly facts: readonly (readonly [string, string])[];
}

/** How a kernel was launched, or what a copy moved; null where it is not recorded. */
export interface Launch {
  readonly grid: readonly [number, number, number] | null;
  readonly block: readonly [number, number, number] | null;
  readonly registers: number | null;
  readonly shared_bytes: number | null;
  readonly moved_bytes: number | null;
  readonly source: string | null;
  readonly target: string | null;
  readonly floor_ns: number | null;
  readonly bound: string | null;
}

/** The inputs of an op, as JSON texts of the profiler. */
export interface Inputs {
  readonly shapes: string;
  readonly dtypes: string;
  readonly module: string;
}

/** Where a finding is seen: names of rows, and the cause of idle time that it removes. */
export interface Spot {
  readonly finding: number;
  readonly names: readonly number[];
  readonly cause: string;
}

/** Everything about the rows but the rows themselves, which follow as columns of bytes. */
export interface Timeline {
  readonly zero_ns: number;
  readonly length_ns: number;
  readonly window: readonly [number, number];
  readonly events: number;
  readonly early_parts: number;
  readonly names: readonly Name[];
  readonly tracks: readonly Track[];
  readonly threads: readonly string[];
  readonly steps: readonly Step[];
  readonly launches: readonly Launch[];
  readonly inputs: readonly Inputs[];
  readonly identities: readonly Identity[];
  readonly causes: readonly string[];
  readonly spots: readonly Spot[];
}

/** The steps as measured: for the panel `steps`. */
export interface StepTimes {
  readonly lengths_ns: readonly number[];
  readonly busy_ns: readonly number[];
  readonly starts_ns: readonly number[];
}

/** One field per panel; null where the trace has nothing to show there. */
export interface Panels {
  readonly steps: StepTimes | null;
}
