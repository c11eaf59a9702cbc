/** Colours of rows: by kind, with a small spread by name; idle causes in a palette that any colour vision tells apart. */

import type { EventKind, Name } from "../contract";

export type Colour = readonly [number, number, number];

/** Lightness, chroma and hue in OKLCH, where equal steps look equal. */
const KINDS: Record<EventKind, Colour> = {
  matmul: [0.56, 0.115, 257], attention: [0.5, 0.12, 287], norm: [0.66, 0.09, 215], kernel: [0.74, 0.06, 240],
  copy: [0.6, 0.1, 308], memset: [0.8, 0.02, 250], comm: [0.6, 0.15, 350], graph: [0.62, 0.08, 180],
  launch: [0.8, 0.045, 165], wait: [0.66, 0.13, 38], api_copy: [0.74, 0.075, 308], allocate: [0.62, 0.09, 20],
  api: [0.83, 0.015, 200], op: [0.81, 0.05, 255], range: [0.88, 0.04, 130], python: [0.88, 0.022, 85],
  module: [0.83, 0.055, 90], sync: [0.72, 0.1, 45], idle: [0.84, 0.01, 250],
};
/** Okabe and Ito's palette; greys and a brown for the causes beyond its eight. The same as in page.css. */
const CAUSES: Record<string, string> = {
  dispatch: "e69f00", sync: "d55e00", transfer: "56b4e9", input: "009e73", memory: "f0e442", comm: "cc79a7", cold_start: "8c5a3c",
  launch_latency: "9aa0a6", dependency: "0072b2", profiler: "5f6368", unknown: "c9cdd2",
};
const HOST: ReadonlySet<EventKind> = new Set(["op", "range", "python", "module"]);
const PALE: ReadonlySet<EventKind> = new Set(["launch", "api", "memset"]);
const STRONG: ReadonlySet<EventKind> = new Set(["matmul", "attention"]);
const WIDE_HUES: ReadonlySet<EventKind> = new Set(["op", "range", "python", "module"]);

function oklch([l, c, h]: Colour): Colour {
  const a = c * Math.cos((h * Math.PI) / 180), b = c * Math.sin((h * Math.PI) / 180);
  const x = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3, y = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const z = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const gamma = (v: number): number => Math.round(255 * Math.min(1, Math.max(0, v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)));
  return [
    gamma(4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z),
    gamma(-1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z),
    gamma(-0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z),
  ];
}

export const fromHex = (hex: string): Colour => {
  const digits = hex.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16)) as unknown as Colour;
};
export const toCss = (colour: Colour): string => `rgb(${colour.join(" ")})`;
/** As one pixel of an ImageData. */
export const toPixel = (colour: Colour): number => ((255 << 24) | (colour[2] << 16) | (colour[1] << 8) | colour[0]) >>> 0;
export const mix = (a: Colour, b: Colour, share: number): Colour => a.map((value, i) => Math.round(value * share + b[i]! * (1 - share))) as unknown as Colour;

export const ofCause = (cause: string): Colour => fromHex(CAUSES[cause] ?? "c9cdd2");

/** The colour of a kind; `spread` from 0 to 1 varies it a little. */
export function ofKind(kind: EventKind, dark: boolean, spread = 0.5): Colour {
  const [lightness, chroma, hue] = KINDS[kind];
  let l = lightness;
  if (dark) l = HOST.has(kind) ? 1.22 - l : PALE.has(kind) ? l - 0.3 : STRONG.has(kind) ? l + 0.05 : l - 0.04;
  return oklch([l + (spread - 0.5) * 0.055, chroma, hue + (((spread * 7) % 1) - 0.5) * (WIDE_HUES.has(kind) ? 46 : 16)]);
}

/** A number from 0 to 1 that depends on the text alone (FNV-1a). */
function spreadOf(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return ((hash >>> 8) % 997) / 997;
}

const isLight = (colour: Colour): boolean => 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] > 135;

/** The pixels of every name, also faded for what a search does not match, and whether dark ink reads on it. */
export interface Paint {
  readonly full: Uint32Array;
  readonly faded: Uint32Array;
  readonly darkInk: Uint8Array;
}

export function paint(names: readonly Name[], dark: boolean, paper: Colour): Paint {
  const full = new Uint32Array(names.length), faded = new Uint32Array(names.length), darkInk = new Uint8Array(names.length);
  names.forEach((name, i) => {
    const cause = name.cause !== null ? ofCause(name.cause) : null;
    const colour = cause ?? ofKind(name.kind, dark, spreadOf(name.short || name.text));
    full[i] = toPixel(colour);
    faded[i] = toPixel(mix(colour, paper, 0.24));
    darkInk[i] = isLight(cause ?? ofKind(name.kind, dark)) ? 1 : 0;
  });
  return { full, faded, darkInk };
}
