/** Search: names that match, how many rows they have, and the next row in time. No list of rows is kept. */

import { NONE, type Events } from "./events";
import type { Matches } from "./raster";

type Wanted = (name: Events["head"]["names"][number], number: number) => boolean;

export class Search {
  matches: Matches | null = null;
  total = 0;
  private wanted: Wanted | null = null;

  constructor(private readonly events: Events) {}

  /** Rows whose name contains the text, in any case; an empty text ends the search. */
  seek(text: string): void {
    const wanted = text.trim().toLowerCase();
    this.choose(wanted ? (name) => name.text.toLowerCase().includes(wanted) || name.short.toLowerCase().includes(wanted) : null);
  }

  /** Rows with one of these names. */
  seekNames(numbers: readonly number[]): void {
    const wanted = new Set(numbers);
    this.choose((_, number) => wanted.has(number));
  }

  /** The same search among other rows. */
  again(): void {
    this.choose(this.wanted);
  }

  private choose(match: Wanted | null): void {
    this.wanted = match;
    this.matches = null;
    this.total = 0;
    if (!match) return;
    const { events } = this, names = Uint8Array.from(events.head.names, (name, number) => (match(name, number) ? 1 : 0));
    const before = new Uint32Array(events.start.length + 1), { name } = events;
    for (let i = 0, sum = 0; i < name.length; i++) before[i + 1] = sum += names[name[i]!]!;
    names.forEach((hit, number) => { if (hit) this.total += events.counts[number]!; });
    this.matches = { names, before };
  }

  /** The next match before or after a row, or from a moment on; from the other end if there is none. */
  next(way: 1 | -1, chosen: number, from: number): number {
    if (!this.matches || !this.total) return NONE;
    const found = this.step(way, chosen, chosen !== NONE ? this.events.start[chosen]! : from);
    return found !== NONE ? found : this.step(way, NONE, way > 0 ? -Infinity : Infinity);
  }

  private step(way: 1 | -1, chosen: number, now: number): number {
    const { events } = this, { start, name } = events, { names } = this.matches!;
    const beyond = (i: number, j: number): boolean => (start[i]! - start[j]! || i - j) * way > 0;
    let best = NONE;
    for (const lane of events.lanes) {
      if (!lane.ready) continue;
      let low = lane.first, high = lane.beyond;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (start[middle]! < now || (way < 0 && start[middle] === now && middle < chosen)) low = middle + 1; else high = middle;
      }
      for (let i = way > 0 ? low : low - 1; i >= lane.first && i < lane.beyond; i += way) {
        if (best !== NONE && beyond(i, best)) break;
        if (names[name[i]!] && (chosen === NONE || beyond(i, chosen))) { best = i; break; }
      }
    }
    return best;
  }
}
