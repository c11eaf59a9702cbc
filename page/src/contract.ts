// Written by page/typescript.py from src/warpline/reports/page/contract.py; do not edit.

/** A number that is known within limits: a step time in nanoseconds, or a speed-up. */
export interface Estimate {
  readonly low: number;
  readonly expected: number;
  readonly high: number;
}

export type TrackKind = "gpu" | "syncs" | "idle" | "ranges" | "python" | "ops" | "api" | "osrt";

export type EventKind = "matmul" | "attention" | "norm" | "kernel" | "copy" | "memset" | "comm" | "graph" | "launch" | "wait" | "api_copy" | "allocate" | "api" | "op" | "range" | "python" | "module" | "sync" | "idle";

/** Rows of one kind of one thread or device, in lanes below each other. */
export interface Track {
  readonly kind: "gpu" | "syncs" | "idle" | "ranges" | "python" | "ops" | "api" | "osrt";
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
  readonly length_ns: number;
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
  readonly inside: number | null;
}

/** The inputs of an op, as JSON texts of the profiler. */
export interface Inputs {
  readonly shapes: string;
  readonly dtypes: string;
  readonly module: string;
}

/** What Nsight Compute measured inside a kernel, in short; the page has all of it as text. */
export interface Inside {
  readonly reason: string;
  readonly facts: readonly (readonly [string, string])[];
  readonly name: number | null;
  readonly start_ns: number | null;
}

/** Where a finding is seen: names of rows, and the cause of idle time that it removes. */
export interface Spot {
  readonly finding: number;
  readonly names: readonly number[];
  readonly cause: string;
}

/** What the first picture needs beside the rows themselves, which follow as columns of bytes. */
export interface Timeline {
  readonly zero_ns: number;
  readonly length_ns: number;
  readonly window: readonly [number, number];
  readonly events: number;
  readonly least_ns: number;
  readonly detailed: readonly [number, number] | null;
  readonly early_parts: number;
  readonly names: readonly Name[];
  readonly tracks: readonly Track[];
  readonly threads: readonly string[];
  readonly steps: readonly Step[];
  readonly causes: readonly string[];
}

/** What explains the rows: read after the first picture, with their arguments and links. */
export interface Particulars {
  readonly launches: readonly Launch[];
  readonly inputs: readonly Inputs[];
  readonly identities: readonly Identity[];
  readonly spots: readonly Spot[];
  readonly inside: readonly Inside[];
}

/** The steps as measured: for the panel `steps`. */
export interface StepTimes {
  readonly lengths_ns: readonly number[];
  readonly busy_ns: readonly number[];
  readonly starts_ns: readonly number[];
}

/** A fix that can be ticked. */
export interface FixChoice {
  readonly name: string;
  readonly words: string;
  readonly effort: string;
  readonly confidence: string;
  readonly claim: string;
}

/** The step after some fixes together. */
export interface Replayed {
  readonly fixes: readonly number[];
  readonly step_ns: Estimate;
  readonly gain: Estimate;
  readonly is_wide: boolean;
}

/** Steps replayed beforehand, for the panel `whatif`. */
export interface FixChoices {
  readonly step_ns: number;
  readonly fixes: readonly FixChoice[];
  readonly replayed: readonly Replayed[];
  readonly planned: readonly number[];
  readonly file: string;
}

/** An op or kernel below the roofline. */
export interface Dot {
  readonly name: string;
  readonly shapes: string;
  readonly calls: number;
  readonly time_ns: number;
  readonly intensity: number;
  readonly flops_per_second: number;
  readonly roof_pct: number | null;
  readonly bound: string;
}

/** A limit of the device. */
export interface Ceiling {
  readonly name: string;
  readonly value: number;
  readonly source: string;
}

/** For the panel `roofline`. */
export interface Roofline {
  readonly device: string;
  readonly total_ns: number;
  readonly drawn_ns: number;
  readonly memory: Ceiling;
  readonly compute: readonly Ceiling[];
  readonly dots: readonly Dot[];
}

/** A column that can be sorted and filtered. */
export interface TableColumn {
  readonly title: string;
  readonly unit: "text" | "count" | "ns" | "bytes" | "bytes_per_second" | "share" | "gain" | "number";
  readonly group: boolean;
  readonly sums: boolean;
}

/** One table of the panel `tables`. */
export interface DataTable {
  readonly title: string;
  readonly columns: readonly TableColumn[];
  readonly rows: readonly (readonly (string | number | null)[])[];
  readonly left_out: number;
}

/** For the panel `tables`. */
export interface DataTables {
  readonly tables: readonly DataTable[];
}

/** A tree of calls; a node comes after its caller. */
export interface Flame {
  readonly name: string;
  readonly frames: readonly string[];
  readonly frame: readonly number[];
  readonly parent: readonly number[];
  readonly total_ns: readonly number[];
}

/** For the panel `flame`. */
export interface Flames {
  readonly flames: readonly Flame[];
}

/** Where the calculator of the panel `budget` starts. */
export interface BudgetInputs {
  readonly launches: number;
  readonly cpu_ns: number;
  readonly gpu_ns: number;
  readonly graph_launch_ns: number;
  readonly graph_gap_ns: number;
  readonly step_ns: number | null;
  readonly graph_ns: number | null;
  readonly loading_ns: number;
}

/** Memory of one device over time. */
export interface Curve {
  readonly title: string;
  readonly times_ns: readonly number[];
  readonly allocated_bytes: readonly number[];
  readonly reserved_bytes: readonly number[];
}

/** For the panel `memory`. */
export interface MemoryCurves {
  readonly curves: readonly Curve[];
}

/** How a number of the page was made. */
export interface Provenance {
  readonly number: string;
  readonly value: string;
  readonly how: string;
}

/** For the panel `numbers`. */
export interface Numbers {
  readonly entries: readonly Provenance[];
}

/** One field per panel; null where the trace has nothing to show there. */
export interface Panels {
  readonly whatif: FixChoices | null;
  readonly steps: StepTimes | null;
  readonly tables: DataTables | null;
  readonly roofline: Roofline | null;
  readonly flame: Flames | null;
  readonly budget: BudgetInputs | null;
  readonly memory: MemoryCurves | null;
  readonly numbers: Numbers | null;
}
