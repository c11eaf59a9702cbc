/** Time by name within a selected range: what ran on the GPU, why it was idle, and what the CPU did. */

import type { TrackKind } from "../contract";
import { make } from "../dom";
import { count, duration, share } from "../words";
import type { Events } from "./events";

const LISTED = 8;
const GROUPS: readonly (readonly [string, readonly TrackKind[]])[] = [["On the GPU", ["gpu"]], ["GPU idle", ["idle"]], ["API calls", ["api"]], ["Outermost ops", ["ops"]]];

export interface Total {
  readonly name: number;
  readonly count: number;
  readonly time: number;
}

/** Sums by name of what lies within the range; rows that cross its edges count with the part inside. */
export function totals(events: Events, start: number, end: number, kinds: readonly TrackKind[]): Total[] {
  const time = new Map<number, [number, number]>();
  for (const lane of events.lanes) {
    const { kind } = lane.group.track;
    if (!lane.ready || !kinds.includes(kind) || (kind === "ops" && lane.depth > 0)) continue;
    for (let i = events.after(lane, start); i < lane.beyond && events.start[i]! < end; i++) {
      const inside = Math.min(end, events.end[i]!) - Math.max(start, events.start[i]!);
      const sum = time.get(events.name[i]!);
      if (sum) { sum[0]++; sum[1] += inside; } else time.set(events.name[i]!, [1, inside]);
    }
  }
  return [...time].map(([name, [number, sum]]) => ({ name, count: number, time: sum })).sort((a, b) => b.time - a.time);
}

export function totalsElement(events: Events, start: number, end: number, search: (text: string) => void): HTMLElement {
  const body = make("div", { class: "totals" });
  for (const [title, kinds] of GROUPS) {
    const found = totals(events, start, end, kinds), sum = found.reduce((all, one) => all + one.time, 0);
    if (!found.length) continue;
    const rows = found.slice(0, LISTED).map((one) => {
      const name = events.head.names[one.name]!, text = name.short || name.text;
      return make("tr", {}, make("td", { class: "number" }, duration(one.time)), make("td", { class: "number" }, share(one.time, end - start)),
        make("td", { class: "number" }, count(one.count)), make("td", {}, make("button", { class: "go", title: name.text, onclick: () => search(text) }, text)));
    });
    const more = found.length > LISTED ? make("p", { class: "quiet" }, `and ${count(found.length - LISTED)} more names`) : "";
    body.append(make("div", {}, make("h3", {}, `${title}: ${duration(sum)}`), make("table", {},
      make("thead", {}, make("tr", {}, ...["time", "share", "count", "name"].map((head, i) => make("th", { scope: "col", class: i < 3 ? "number" : "" }, head)))), make("tbody", {}, ...rows)), more));
  }
  return body;
}
