/** Numbers for people, in the notation of warpline's other reports (src/warpline/units.py): 950 ns, 4.56 ms, 45.6 %. */

const TIME_STEPS: readonly (readonly [number, string])[] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
const BYTE_STEPS: readonly (readonly [number, string])[] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
/** From this part of a unit on, three digits round to the whole unit: 999.6 µs are 1.00 ms. */
const ROUNDS_UP = 0.9995;
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return whole.format(value);
  return size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function inUnit(value: number, steps: readonly (readonly [number, string])[], rest: string): string {
  for (const [size, unit] of steps) if (Math.abs(value) >= size * ROUNDS_UP) return `${digits(value / size)} ${unit}`;
  return `${value.toFixed(0)} ${rest}`;
}

/** Nanoseconds in a readable unit. */
export const duration = (ns: number): string => inUnit(ns, TIME_STEPS, "ns");
/** Bytes with decimal prefixes. */
export const size = (bytes: number): string => inUnit(bytes, BYTE_STEPS, "B");
/** A part of a whole in percent; a dash if the whole is zero. */
export const share = (part: number, of: number): string => (of ? `${((100 * part) / of).toFixed(1)} %` : "–");
/** Old time over new time. */
export const speedup = (value: number): string => `${digits(value)}×`;
/** How many. */
export const count = (value: number): string => whole.format(value);
/** The number with its noun. */
export const several = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${count(value) === "1" ? one : many}`;
