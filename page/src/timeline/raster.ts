/** One lane as a line of pixels, column by column. */

import type { Events, Lane } from "./events";

/** Rows narrower than this many pixels are drawn by how much of their column they cover. */
const NARROW = 1.5;
/** Least strength of a lone narrow row: it must not vanish. Idle time stays in proportion. */
const LEAST = 0.25, LEAST_IDLE = 0.08;

/** Which rows a search found: by name, and how many before each row. */
export interface Matches {
  readonly names: Uint8Array;
  readonly before: Uint32Array;
}

export class Raster {
  readonly line: Uint32Array;

  constructor(private readonly events: Events, readonly width: number) {
    this.line = new Uint32Array(width);
  }

  /** Draws the lane over what the line holds; `wide` is told of rows with room for a label. */
  draw(lane: Lane, from: number, scale: number, look: Uint32Array, matches: Matches | null, wide: ((i: number, left: number, right: number) => void) | null): boolean {
    const { events, line, width } = this, { start, end, sum, name } = events, { beyond } = lane;
    const until = from + width / scale, linear = lane.group.track.kind === "idle";
    let i = events.after(lane, from), drawn = false;
    while (i < beyond && start[i]! < until) {
      drawn = true;
      const a = (start[i]! - from) * scale, b = (end[i]! - from) * scale;
      if (b - a >= NARROW) {
        const left = Math.max(0, a), right = Math.min(width, b - a > 4 ? b - 1 : b), colour = look[name[i]!]!;
        const first = Math.ceil(left), last = Math.floor(right);
        if (last > first) line.fill(colour, first, last);
        if (first > left && first <= width) this.blend(first - 1, colour, first - left);
        if (right > last && last < width) this.blend(last, colour, right - last);
        if (wide) wide(i, left, right);
        i++;
        continue;
      }
      const x = Math.max(0, Math.floor(a)), edge = from + (x + 1) / scale;
      let j = events.leap(i, beyond, edge);
      if (j - 1 > i && (end[j - 1]! - start[j - 1]!) * scale >= NARROW) j--;
      const spill = Math.max(0, end[j - 1]! - edge) * scale, covered = (sum[j]! - sum[i]!) * scale - spill;
      if (x < width) {
        const matching = matches !== null && matches.before[j]! > matches.before[i]!;
        const shown = j - i === 1 ? i : matching ? firstMatch(matches, i, j) : events.longest(i, j);
        const strength = covered >= 1 || matching ? 1 : linear ? Math.max(LEAST_IDLE, covered) : Math.max(LEAST, Math.sqrt(Math.max(0, covered)));
        this.blend(x, look[name[shown]!]!, strength);
        if (spill > 0.05 && x + 1 < width) this.blend(x + 1, look[name[j - 1]!]!, Math.min(1, spill));
      }
      i = j;
    }
    return drawn;
  }

  private blend(x: number, colour: number, share: number): void {
    const under = this.line[x]!, rest = 1 - share;
    const blue = ((colour >>> 16) & 255) * share + ((under >>> 16) & 255) * rest;
    const green = ((colour >>> 8) & 255) * share + ((under >>> 8) & 255) * rest;
    const red = (colour & 255) * share + (under & 255) * rest;
    this.line[x] = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }
}

/** The first row from `i` up to `j` that matches; there is one. */
function firstMatch(matches: Matches, i: number, j: number): number {
  const none = matches.before[i]!;
  let low = i, high = j - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (matches.before[middle + 1]! > none) high = middle; else low = middle + 1;
  }
  return low;
}
