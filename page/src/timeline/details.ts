/** All that is known of one row: its times, what the kernel's name shows, how it was launched, and where it comes from. */

import { make, type Child } from "../dom";
import { count, duration, share, size } from "../words";
import { NONE, type Events } from "./events";
import type { Relations } from "./relations";

/** Innermost Python frames that are listed. */
const FRAMES = 6;

export class Details {
  private readonly list = make("dl");

  constructor(private readonly events: Events, private readonly relations: Relations, private readonly go: (i: number) => void, private readonly search: (text: string) => void) {}

  /** The body of the panel for a row. */
  element(i: number): HTMLElement {
    this.list.replaceChildren();
    const { events } = this;
    this.say("duration", duration(events.duration(i)));
    this.say("begins", exact(events.start[i]!));
    switch (events.kind(i)) {
      case "gpu": this.operation(i); break;
      case "idle": this.gap(i); break;
      case "api": this.call(i); break;
      case "ops": this.op(i); break;
      default: break;
    }
    const name = events.head.names[events.name[i]!]!;
    if (name.short && name.cause === null) this.say("full name", make("code", {}, name.text));
    return make("div", { class: "body" }, make("div", { class: "facts" }, this.list), make("div", { class: "chain" }, ...this.inside(i), ...this.within(i)));
  }

  /** How many rows have this name, and a search for them. */
  same(i: number): HTMLElement {
    const { events } = this, text = events.label(i);
    return make("p", { class: "quiet" }, `${count(events.counts[events.name[i]!]!)} of this name · `, make("button", { class: "go", onclick: () => this.search(text) }, "search"));
  }

  private say(label: string, ...value: (Child | null | undefined)[]): void {
    const shown = value.filter((one): one is Child => one !== null && one !== undefined && one !== "");
    if (shown.length) this.list.append(make("dt", {}, label), make("dd", {}, ...shown));
  }

  private link(i: number, more = ""): HTMLElement {
    return make("button", { class: "go", title: this.events.text(i), onclick: () => this.go(i) }, this.events.label(i) + more);
  }

  private operation(i: number): void {
    const { events, relations } = this, { head, particulars, start } = events, launch = particulars.launches[events.argument[i]! - 1], call = relations.callOf(i);
    const identity = head.names[events.name[i]!]!.identity;
    if (launch?.floor_ns != null) this.say("roofline", `${share(launch.floor_ns, events.duration(i))} of it reached: at least ${duration(launch.floor_ns)}, bound by ${launch.bound ?? "?"}`);
    for (const [label, text] of particulars.identities[identity ?? NONE]?.facts ?? []) this.say(label, text);
    if (launch?.grid && launch.block) {
      this.say("grid × block", `${launch.grid.join(", ")} × ${launch.block.join(", ")}`);
      this.say("threads", count([...launch.grid, ...launch.block].reduce((a, b) => a * b, 1)));
    }
    if (launch?.registers != null) this.say("registers, shared", `${launch.registers} a thread, ${size(launch.shared_bytes ?? 0)} a block`);
    if (launch?.moved_bytes != null) this.say("moved", `${size(launch.moved_bytes)}${events.duration(i) ? `, ${size((launch.moved_bytes / events.duration(i)) * 1e9)}/s` : ""}`);
    if (launch?.source) this.say("memory", `${launch.source} → ${launch.target ?? "?"}`);
    if (call !== NONE) {
      this.say("launched by", this.link(call, `  ${duration(events.duration(call))}`));
      this.say("launch→start", duration(start[i]! - start[call]!));
    }
    const op = relations.opOf(i);
    if (op !== NONE) { this.say("op", this.link(op)); this.inputs(op); }
  }

  /** What Nsight Compute measured in this kernel, and the way to all of it. */
  private inside(i: number): HTMLElement[] {
    const { events } = this, number = events.kind(i) === "gpu" ? events.particulars.launches[events.argument[i]! - 1]?.inside : null;
    const answer = events.particulars.inside[number ?? NONE];
    if (!answer) return [];
    const facts = answer.facts.flatMap(([label, text]) => [make("dt", {}, label), make("dd", {}, text)]);
    const all = document.getElementById(`inside-${number}`);
    const go = make("button", { type: "button", class: "go", onclick: () => { all!.setAttribute("open", ""); all!.scrollIntoView({ block: "start" }); } }, "all measured values");
    return [make("h3", {}, "inside, by Nsight Compute"), make("p", {}, make("b", {}, answer.reason)), make("dl", {}, ...facts), ...(all ? [go] : [])];
  }

  private inputs(op: number): void {
    const inputs = this.events.particulars.inputs[this.events.argument[op]! - 1];
    if (!inputs) return;
    if (inputs.shapes) this.say("shapes", make("code", {}, inputs.shapes));
    if (inputs.dtypes) this.say("types", make("code", {}, inputs.dtypes));
    if (inputs.module) this.say("module", inputs.module);
  }

  private call(i: number): void {
    const { events, relations } = this, work = relations.launched(i), op = events.link[i]!;
    if (work.length) {
      this.say("launches", this.link(work[0]!), work.length > 1 ? ` and ${count(work.length - 1)} more` : null);
      this.say("launch→start", duration(events.start[work[0]!]! - events.start[i]!));
    }
    if (op !== NONE) { this.say("op", this.link(op)); this.inputs(op); }
  }

  private op(i: number): void {
    const { events, relations } = this, forward = events.link[i]!;
    this.inputs(i);
    const work = relations.workOf(i);
    if (work.length) {
      const total = work.reduce((sum, k) => sum + events.duration(k), 0);
      this.say("on the GPU", this.link(work[0]!), work.length > 1 ? ` and ${count(work.length - 1)} more, ${duration(total)} in all` : null);
    }
    if (forward !== NONE) this.say("backward of", this.link(forward));
    else { const backward = relations.backwardOf(i); if (backward.length) this.say("differentiated by", this.link(backward[0]!)); }
  }

  private gap(i: number): void {
    const { events } = this, lane = events.laneOf(i), { start, end, link } = events;
    let first = i, last = i;
    while (first > lane.first && link[first - 1] === link[i] && start[first] === end[first - 1]) first--;
    while (last + 1 < lane.beyond && link[last + 1] === link[i] && end[last] === start[last + 1]) last++;
    const parts: string[] = [];
    for (let k = first; k <= last; k++) parts.push(`${events.label(k)} ${duration(events.duration(k))}`);
    this.say("whole gap", `${duration(end[last]! - start[first]!)}: ${parts.join(", ")}`);
    if (link[i] !== NONE) this.say("ended by", this.link(link[i]!));
  }

  /** The calls that enclose the row, or the launch of it. */
  private within(i: number): HTMLElement[] {
    const { events, relations } = this, lane = events.laneOf(i), { kind } = lane.group.track;
    const call = relations.callOf(i), of = lane.group.track.thread !== null ? i : call !== NONE ? call : kind === "gpu" ? relations.opOf(i) : NONE;
    if (of === NONE) return [];
    const { thread } = events.laneOf(of).group.track, moment = events.start[of]!;
    const frames = relations.around(relations.group("python", thread), moment, kind === "python" ? lane.depth : Infinity);
    const ranges = kind === "python" ? [] : relations.around(relations.group("ranges", thread), moment, kind === "ranges" ? lane.depth : Infinity);
    const ops = kind === "python" || kind === "ranges" ? [] : relations.around(relations.group("ops", thread), moment, kind === "ops" ? lane.depth : Infinity);
    const enclosing = [...ranges, ...frames.slice(-FRAMES), ...ops].filter((k) => k !== i);
    return enclosing.length ? [make("h3", {}, "within"), ...enclosing.map((k) => this.link(k, `  ${duration(events.duration(k))}`))] : [];
  }
}

/** A moment with microseconds in full. */
const exact = (ns: number): string => `${(ns / 1e6).toFixed(3)} ms`;
