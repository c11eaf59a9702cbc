/** Which rows belong together: launch and kernel, op and calls, forward and backward, what encloses a moment. */

import { NONE, type Events, type Group, type Lane } from "./events";

/** Arrows of one row at most. */
const MOST_ARROWS = 24;

export type Arrow = readonly [from: number, to: number];

export class Relations {
  constructor(private readonly events: Events) {}

  private linkedTo(kind: Group["track"]["kind"], target: (link: number) => boolean): number[] {
    const found: number[] = [], { link } = this.events;
    for (const lane of this.events.lanes) {
      if (lane.group.track.kind !== kind) continue;
      for (let i = lane.first; i < lane.beyond; i++) if (target(link[i]!)) found.push(i);
    }
    return found;
  }

  /** The GPU operations that a call launched, or that an op without a recorded launch made. */
  launched(call: number): number[] {
    return this.linkedTo("gpu", (link) => link === call);
  }

  /** The ops that differentiate a forward op. */
  backwardOf(op: number): number[] {
    return this.linkedTo("ops", (link) => link === op);
  }

  /** The API calls within an op, on its thread. */
  callsOf(op: number): number[] {
    const { events } = this, { start, end } = events, thread = events.laneOf(op).group.track.thread, found: number[] = [];
    for (const lane of events.lanes) {
      if (lane.group.track.kind !== "api" || lane.group.track.thread !== thread) continue;
      for (let i = events.after(lane, start[op]!); i < lane.beyond && start[i]! < end[op]!; i++) if (start[i]! >= start[op]!) found.push(i);
    }
    return found;
  }

  /** All GPU operations of an op. */
  workOf(op: number): number[] {
    const calls = new Set(this.callsOf(op));
    return this.linkedTo("gpu", (link) => link === op || calls.has(link));
  }

  /** The call that launched an operation. */
  callOf(i: number): number {
    const { events } = this, from = events.link[i]!;
    return events.kind(i) === "gpu" && from !== NONE && events.kind(from) === "api" ? from : NONE;
  }

  /** The op of a row. */
  opOf(i: number): number {
    const { events } = this, kind = events.kind(i);
    if (kind === "ops") return i;
    if (kind === "api") return events.link[i]!;
    if (kind !== "gpu") return NONE;
    const call = this.callOf(i);
    return call !== NONE ? events.link[call]! : events.link[i]!;
  }

  arrows(i: number): Arrow[] {
    const { events } = this, from = events.link[i]!;
    switch (events.kind(i)) {
      case "gpu": case "syncs": return from !== NONE ? [[from, i]] : [];
      case "idle": return from !== NONE && events.link[from] !== NONE ? [[events.link[from]!, from]] : [];
      case "api": return this.launched(i).slice(0, MOST_ARROWS).map((k) => [i, k]);
      case "ops": {
        const differentiates: Arrow[] = from !== NONE ? [[from, i]] : this.backwardOf(i).slice(0, MOST_ARROWS).map((k) => [i, k]);
        return [...differentiates, ...this.workOf(i).slice(0, MOST_ARROWS).map((k): Arrow => [events.link[k]!, k])];
      }
      default: return [];
    }
  }

  /** Rows that are framed together with a selected one. */
  family(i: number): number[] {
    const { events } = this, from = events.link[i]!, found = [from];
    if (from !== NONE) found.push(events.link[from]!);
    if (events.kind(i) === "idle" && from !== NONE && events.link[from] !== NONE) found.push(events.link[events.link[from]!]!);
    return found.filter((k) => k !== NONE);
  }

  /** The rows of a track that enclose a moment, the outermost first. */
  around(group: Group | undefined, time: number, above = Infinity): number[] {
    const found: number[] = [];
    for (const lane of group?.lanes ?? []) {
      if (lane.depth >= above || !lane.ready) continue;
      const i = this.events.after(lane, time);
      if (i < lane.beyond && this.events.start[i]! <= time) found.push(i);
    }
    return found;
  }

  group(kind: Group["track"]["kind"], thread: number | null): Group | undefined {
    return this.events.groups.find((group) => group.track.kind === kind && group.track.thread === thread);
  }

  /** The next row in or out of a selected one: the caller above, the first callee below. */
  neighbour(i: number, way: 1 | -1): number {
    const { events } = this, lane = events.laneOf(i), other: Lane | undefined = lane.group.lanes[lane.depth + way];
    if (!other) return NONE;
    const found = way < 0 ? events.after(other, events.start[i]!) : firstFrom(events, other, events.start[i]!);
    return found < other.beyond && events.start[found]! < events.end[i]! && events.end[found]! > events.start[i]! ? found : NONE;
  }
}

function firstFrom(events: Events, lane: Lane, time: number): number {
  let low = lane.first, high = lane.beyond;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (events.start[middle]! < time) low = middle + 1; else high = middle;
  }
  return low;
}
