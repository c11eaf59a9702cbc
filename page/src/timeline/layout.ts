/** Where each lane is: devices first, which stay in place while threads scroll, then threads, the busiest first. */

import type { TrackKind } from "../contract";
import { several } from "../words";
import { MOST_STREAMS, STREAMS, type Events, type Group, type Lane } from "./events";

/** Width of the names beside the lanes; a phone has less room. */
export const GUTTER = globalThis.innerWidth < 700 ? 112 : 200;
export const RULER = 22, STEPS = 17, LANE = 17, THIN = 3, HEAD = 22;
/** Height above the lanes. */
export const TOP = RULER + STEPS;
/** Lanes of a folded track that are drawn. */
const FOLDED_LANES = 14;
/** Devices' rows stay in place if they take no more than this share of the height. */
const MOST_PINNED = 0.5;
const DEVICE_KINDS: readonly TrackKind[] = ["gpu", "idle", "syncs"];
const THREAD_KINDS: readonly TrackKind[] = ["api", "ops", "ranges", "python"];
const LABELS: Partial<Record<TrackKind, string>> = { python: "Python" };

export interface Row {
  readonly y: number;
  readonly height: number;
  readonly title?: string;
  readonly lane?: Lane;
  readonly label?: string;
  /** The tracks that a click on the label folds or unfolds. */
  readonly toggles?: readonly Group[];
  readonly thin?: boolean;
}

export class Layout {
  readonly rows: Row[] = [];
  /** Height of the rows that do not scroll. */
  readonly pinned: number;
  readonly height: number;
  private readonly rowOf = new Map<Lane, Row>();
  private y = 0;

  constructor(events: Events, viewHeight: number) {
    const { groups, head } = events, byThread = new Map<number | null, Group[]>();
    for (const group of groups) byThread.set(group.track.thread, [...(byThread.get(group.track.thread) ?? []), group]);
    for (const device of distinct(groups.map((group) => group.track.device))) this.addDevice(device, groups.filter((group) => group.track.device === device));
    const devices = this.y;
    for (const thread of busiestFirst(groups)) {
      this.add(HEAD, { title: head.threads[thread] ?? "thread" });
      for (const kind of THREAD_KINDS) for (const group of byThread.get(thread) ?? []) if (group.track.kind === kind) this.addGroup(group, LABELS[kind] ?? group.track.label);
    }
    this.height = this.y;
    this.pinned = devices > viewHeight * MOST_PINNED ? 0 : devices;
  }

  of(lane: Lane): Row | undefined {
    return this.rowOf.get(lane);
  }

  private add(height: number, more: Omit<Row, "y" | "height">): void {
    const row: Row = { y: this.y, height, ...more };
    this.rows.push(row);
    if (row.lane) this.rowOf.set(row.lane, row);
    this.y += height;
  }

  /** Many streams can be folded to thin lines, below the idle time of their device. */
  private addDevice(device: number, groups: readonly Group[]): void {
    const streams = groups.filter((group) => STREAMS.includes(group.track.kind)), crowded = streams.filter((group) => group.track.kind === "gpu").length > MOST_STREAMS;
    const folded = crowded && !streams.some((group) => group.open);
    this.add(HEAD, { title: `GPU ${device}`, ...(crowded ? { toggles: streams } : {}) });
    for (const kind of folded ? DEVICE_KINDS.filter((one) => !STREAMS.includes(one)) : DEVICE_KINDS) for (const group of groups) if (group.track.kind === kind) this.addGroup(group, group.track.label);
    if (!folded) return;
    let label: string | undefined = several(streams.filter((group) => group.track.kind === "gpu").length, "stream");
    for (const { lanes } of streams) for (const lane of lanes) { this.add(THIN, { lane, thin: true, ...(label ? { label, toggles: streams } : {}) }); label = undefined; }
    this.y += 5;
  }

  private addGroup(group: Group, label: string): void {
    const lanes = group.lanes, from = this.y;
    if (!lanes.length) return;
    const folds = lanes.length > 1 || group.track.kind === "python";
    for (const lane of group.open ? lanes : lanes.slice(0, FOLDED_LANES)) {
      const first = lane.depth === 0;
      this.add(group.open ? LANE : THIN, { lane, ...(first ? { label } : {}), ...(first && folds ? { toggles: [group] } : {}), ...(group.open ? {} : { thin: true }) });
    }
    this.y = Math.max(this.y, from + LANE) + 5;
  }
}

const distinct = (values: readonly (number | null)[]): number[] => [...new Set(values.filter((value) => value !== null))].sort((a, b) => a - b);

/** Threads with ranges or Python and API calls first, then by their API calls and ops. */
function busiestFirst(groups: readonly Group[]): number[] {
  const rows = new Map<number, Partial<Record<TrackKind, number>>>();
  for (const { track } of groups) {
    if (track.thread === null) continue;
    const mine = rows.get(track.thread) ?? {};
    mine[track.kind] = (mine[track.kind] ?? 0) + track.lanes.reduce((a, b) => a + b, 0);
    rows.set(track.thread, mine);
  }
  const rank = [...rows].map(([thread, { api = 0, ops = 0, ranges = 0, python = 0 }]) => ({ thread, main: Number(api > 0 && ranges + python > 0), api, ops }));
  return rank.sort((a, b) => b.main - a.main || b.api - a.api || b.ops - a.ops || a.thread - b.thread).map(({ thread }) => thread);
}
