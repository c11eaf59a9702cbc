/**
 * The rows of the timeline in typed arrays: lane after lane, sorted by begin. A lane is one line of one track.
 *
 * No levels of detail are stored. A prefix sum of durations gives how much of any column of pixels is covered, and the
 * longest row of each block of 64 gives its colour, so that drawing costs as much as there are pixels, not rows.
 */

import type { Particulars, Timeline, Track } from "../contract";
import { planes, unzigzag, withHead } from "../unpack";

const BLOCK = 64;
/** A column with many blocks looks at so many of them at most. */
const MOST_BLOCKS = 64;

export interface Lane {
  readonly group: Group;
  readonly depth: number;
  /** Its rows are from `first` up to `beyond`. */
  readonly first: number;
  readonly beyond: number;
  ready: boolean;
}

/** A track and its lanes. */
export interface Group {
  readonly track: Track;
  readonly lanes: readonly Lane[];
  open: boolean;
}

export const NONE = -1;
/** Tracks of a stream; a device with more streams than this has them folded at first. */
export const STREAMS: readonly Track["kind"][] = ["gpu", "syncs"];
export const MOST_STREAMS = 12;

export class Events {
  head!: Timeline;
  /** Empty until they are read. */
  particulars: Particulars = { launches: [], inputs: [], identities: [], spots: [], inside: [] };
  start!: Float64Array;
  end!: Float64Array;
  /** Duration of all rows before a row. */
  sum!: Float64Array;
  name!: Uint16Array | Uint32Array;
  argument!: Uint32Array;
  link!: Int32Array;
  /** Rows with each name. */
  counts!: Uint32Array;
  groups: readonly Group[] = [];
  lanes: readonly Lane[] = [];
  private longestOf!: Uint32Array;

  constructor(head: Timeline) {
    this.renew(head);
  }

  /** Makes room for other rows of the same trace; folded tracks stay folded. */
  renew(head: Timeline): void {
    const n = head.events, open = this.groups.map((group) => group.open);
    this.head = head;
    this.start = new Float64Array(n);
    this.end = new Float64Array(n);
    this.sum = new Float64Array(n + 1);
    this.name = head.names.length < 65536 ? new Uint16Array(n) : new Uint32Array(n);
    this.argument = new Uint32Array(n);
    this.link = new Int32Array(n).fill(NONE);
    this.counts = new Uint32Array(head.names.length);
    this.longestOf = new Uint32Array(Math.ceil(n / BLOCK));
    let at = 0;
    const streams = new Map<number | null, number>();
    for (const { kind, device } of head.tracks) if (kind === "gpu") streams.set(device, (streams.get(device) ?? 0) + 1);
    const folded = ({ kind, device }: Track): boolean => kind === "python" || (STREAMS.includes(kind) && (streams.get(device) ?? 0) > MOST_STREAMS);
    this.groups = head.tracks.map((track, number) => {
      const lanes: Lane[] = [], group: Group = { track, lanes, open: open[number] ?? !folded(track) };
      track.lanes.forEach((count, depth) => lanes.push({ group, depth, first: at, beyond: (at += count), ready: false }));
      return group;
    });
    this.lanes = this.groups.flatMap((group) => group.lanes);
  }

  /** Reads what the first picture needs, from `at` on; returns the place after it. */
  readFirst(bytes: Uint8Array<ArrayBuffer>, at: number): number {
    return this.readPictures(bytes, at, 0, this.head.early_parts);
  }

  /** Reads everything else. */
  readRest(bytes: Uint8Array<ArrayBuffer>, at: number): void {
    const early = this.head.early_parts, parts = this.head.tracks.reduce((most, track) => Math.max(most, track.part + 1), 0);
    ({ head: this.particulars, at } = withHead<Particulars>(bytes, at));
    at = this.readRelations(bytes, at, 0, early);
    at = this.readPictures(bytes, at, early, parts);
    this.readRelations(bytes, at, early, parts);
  }

  private readPictures(bytes: Uint8Array, at: number, first: number, beyond: number): number {
    for (let part = first; part < beyond; part++) at = this.readPicture(bytes, at, this.lanes.filter((lane) => lane.group.track.part === part));
    return at;
  }

  private readRelations(bytes: Uint8Array, at: number, first: number, beyond: number): number {
    const { argument, link } = this;
    for (let part = first; part < beyond; part++) {
      const lanes = this.lanes.filter((lane) => lane.group.track.part === part), lo = lanes[0]?.first ?? 0, n = (lanes[lanes.length - 1]?.beyond ?? 0) - lo;
      at = planes(bytes, at, n, argument, lo);
      const steps = new Float64Array(n);
      at = planes(bytes, at, n, steps, 0);
      for (let i = 0, linked = NONE; i < n; i++) link[lo + i] = linked += unzigzag(steps[i]!);
    }
    return at;
  }

  private readPicture(bytes: Uint8Array, at: number, lanes: readonly Lane[]): number {
    const { start, end, sum, name, counts } = this;
    const lo = lanes[0]?.first ?? 0, hi = lanes[lanes.length - 1]?.beyond ?? 0, n = hi - lo;
    for (const column of [start, end, name]) at = planes(bytes, at, n, column, lo);
    let total = sum[lo] ?? 0;
    for (const lane of lanes) {
      let before = 0;
      for (let i = lane.first; i < lane.beyond; i++) {
        const duration = end[i]!;
        start[i] = before += unzigzag(start[i]!);
        end[i] = before += duration;
        sum[i + 1] = total += duration;
        counts[name[i]!]!++;
      }
      lane.ready = true;
    }
    for (let block = Math.floor(lo / BLOCK); block * BLOCK < hi; block++) {
      let best = Math.max(block * BLOCK, lo);
      for (let i = best + 1, stop = Math.min(hi, (block + 1) * BLOCK); i < stop; i++) if (this.duration(i) > this.duration(best)) best = i;
      this.longestOf[block] = best;
    }
    return at;
  }

  duration(i: number): number {
    return this.end[i]! - this.start[i]!;
  }

  text(i: number): string {
    return this.head.names[this.name[i]!]!.text;
  }

  label(i: number): string {
    const name = this.head.names[this.name[i]!]!;
    return name.short || name.text;
  }

  /** First row of the lane that ends after `time`. */
  after(lane: Lane, time: number): number {
    let low = lane.first, high = lane.beyond;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.end[middle]! > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  /** First row after `i` that begins at `time` or later: doubling steps, then halves. */
  leap(i: number, beyond: number, time: number): number {
    const { start } = this;
    let step = 1, low = i;
    while (low + step < beyond && start[low + step]! < time) { low += step; step *= 2; }
    let high = Math.min(beyond, low + step);
    low++;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle]! < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  /** The longest row from `i` up to `j`; among very many, the longest of some blocks. */
  longest(i: number, j: number): number {
    let best = i, most = this.duration(i);
    const see = (k: number): void => {
      const length = this.duration(k);
      if (length > most) { most = length; best = k; }
    };
    const first = Math.ceil(i / BLOCK), last = Math.floor(j / BLOCK);
    if (last <= first) {
      for (let k = i + 1; k < j; k++) see(k);
      return best;
    }
    for (let k = i + 1; k < first * BLOCK; k++) see(k);
    const stride = Math.max(1, Math.floor((last - first) / MOST_BLOCKS));
    for (let block = first; block < last; block += stride) see(this.longestOf[block]!);
    for (let k = last * BLOCK; k < j; k++) see(k);
    return best;
  }

  /** The row of a kind of track with this name and begin; NONE if there is none. */
  find(kind: Track["kind"], name: number, start: number): number {
    for (const lane of this.lanes) {
      if (lane.group.track.kind !== kind) continue;
      for (let i = this.after(lane, start); i < lane.beyond && this.start[i]! <= start; i++) if (this.start[i] === start && this.name[i] === name) return i;
    }
    return NONE;
  }

  laneOf(i: number): Lane {
    let low = 0, high = this.lanes.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lanes[middle]!.first <= i) low = middle; else high = middle - 1;
    }
    while (this.lanes[low]!.beyond <= i) low++;
    return this.lanes[low]!;
  }

  kind(i: number): Track["kind"] {
    return this.laneOf(i).group.track.kind;
  }
}
