/** The timeline: keeps what is chosen, draws when something changes, and answers to the rest of the page. */

import type { EventKind, Timeline as Head } from "../contract";
import { draw, make } from "../dom";
import type { Page } from "../page";
import { onThemeChange } from "../theme";
import { count, duration, several } from "../words";
import { fromHash, toHash } from "./address";
import { Picture, type Size } from "./canvas";
import { ofCause, ofKind, paint, toCss, type Colour, type Paint } from "./colours";
import { Details } from "./details";
import { Events, NONE, STREAMS, type Group } from "./events";
import { furnish, type Furniture } from "./furniture";
import { HEAD, LANE, TOP } from "./layout";
import { currentLook, type Look } from "./look";
import { Minimap } from "./minimap";
import { Overlay } from "./overlay";
import { Relations } from "./relations";
import { Search } from "./search";
import { totalsElement } from "./totals";
import { TimeWindow } from "./window";

const WRITE_ADDRESS_MS = 400, LEAST_HEIGHT = 160;
/** Beside what the first picture shows, as a share of it. */
const MARGIN = 0.02;

/** The kinds of rows whose colours the legend explains, with their words. */
const LEGENDS: readonly (readonly [string, readonly (readonly [EventKind, string])[]])[] = [
  ["GPU", [["matmul", "matmul, conv"], ["attention", "attention"], ["norm", "norm, softmax, reduction"], ["kernel", "other kernel"], ["graph", "graph"],
    ["comm", "collective"], ["sync", "wait"], ["copy", "copy"], ["memset", "memset"]]],
  ["Calls", [["launch", "launch"], ["wait", "wait"], ["api_copy", "copy"], ["allocate", "allocation"], ["api", "other call"]]],
];
const swatch = (colour: Colour): SVGElement => draw("svg", { class: "swatch", viewBox: "0 0 1 1", "aria-hidden": "true" }, draw("rect", { width: 1, height: 1, fill: toCss(colour) }));

export class Timeline implements Page {
  readonly events: Events;
  readonly time: TimeWindow;
  readonly picture: Picture;
  readonly relations: Relations;
  readonly search_: Search;
  readonly parts: Furniture;
  chosen = NONE;
  hovered = NONE;
  range: readonly [number, number] | null = null;
  private readonly overlay: Overlay;
  private readonly minimap: Minimap;
  private readonly details: Details;
  private look!: Look;
  private paint!: Paint;
  private colours!: Uint32Array;
  private pending = false;
  private writing = 0;
  /** What the first picture shows: it needs no address. */
  private readonly opening: readonly [number, number];
  /** Gaps of a cause, the largest first, and how far the reader has gone through them. */
  private gaps: { readonly rows: number[]; at: number } | null = null;

  constructor(readonly head: Head, bytes: Uint8Array<ArrayBuffer>, at: number, section: HTMLElement, private readonly whenDrawn: () => void = () => undefined) {
    this.events = new Events(head);
    this.events.readFirst(bytes, at);
    this.parts = furnish(section);
    this.time = new TimeWindow(Math.max(1, head.length_ns), () => this.redraw());
    this.picture = new Picture(this.parts.view, this.events, this.time);
    this.overlay = new Overlay(this.parts.over, this.picture);
    this.minimap = new Minimap(this.parts.map, this.events, this.time);
    this.relations = new Relations(this.events);
    this.search_ = new Search(this.events);
    this.details = new Details(this.events, this.relations, (i) => this.choose(i, true), (text) => this.search(text));
    this.parts.map.hidden = !head.tracks.some((track) => track.device !== null);
    this.dress();
    const [from, to] = head.window, part = to - from;
    if (part > 0) this.time.move(from - MARGIN * part, to + MARGIN * part);
    this.opening = [this.time.start, this.time.end];
    this.resize();
    this.openAddress();
    new ResizeObserver(() => { if (!this.picture.has(this.box())) this.resize(); }).observe(this.parts.stage);
    onThemeChange(() => { this.dress(); this.draw(); });
    addEventListener("hashchange", () => this.openAddress());
  }

  /** Adds what comes after the first picture. */
  addRest(bytes: Uint8Array<ArrayBuffer>): void {
    this.events.readRest(bytes, 0);
    if (this.parts.find.value) this.seek(this.parts.find.value);
    const { event } = fromHash(location.hash);
    if (event !== undefined && this.chosen === NONE) this.openAddress();
    if (this.chosen !== NONE) this.choose(this.chosen);
    this.redraw();
  }

  /** Shows other rows of the same trace; what was selected is found again by its track, name and begin. */
  replace(head: Head, bytes: Uint8Array<ArrayBuffer>, at: number): void {
    const { events, chosen } = this, was = chosen === NONE ? null : { kind: events.kind(chosen), name: events.name[chosen]!, start: events.start[chosen]! };
    events.renew(head);
    events.readRest(bytes, events.readFirst(bytes, at));
    this.picture.place();
    this.minimap.forget();
    this.gaps = null;
    this.search_.again();
    this.choose(was ? events.find(was.kind, was.name, was.start) : NONE);
    this.afterSearch();
  }

  goTo(startNs: number, endNs: number): void {
    const margin = (endNs - startNs) * 0.05;
    this.parts.stage.scrollIntoView({ block: "nearest" });
    this.time.glide(startNs - margin, endNs + margin);
  }

  search(text: string): void {
    this.parts.find.value = text;
    this.seek(text);
    this.parts.stage.scrollIntoView({ block: "nearest" });
    this.next(1);
  }

  /** Highlights what a finding names, and goes to the first; without names, through the gaps that it removes. */
  showFinding(number: number): void {
    const spot = this.events.particulars.spots.find((one) => one.finding === number);
    if (!spot) return;
    this.parts.stage.scrollIntoView({ block: "center" });
    if (!spot.names.length) { this.throughGaps(spot.cause); return; }
    this.parts.find.value = "";
    this.search_.seekNames(spot.names);
    this.afterSearch();
    this.next(1);
  }

  /** Goes to the launch that Nsight Compute profiled. */
  showInside(number: number): void {
    const { name, start_ns } = this.events.particulars.inside[number]!;
    if (name === null || start_ns === null) return;
    this.parts.stage.scrollIntoView({ block: "center" });
    this.choose(this.events.find("gpu", name, start_ns), true);
  }

  redraw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  private draw(): void {
    this.picture.draw(this.look, this.paint, this.colours, this.search_.matches);
    this.minimap.draw(this.look);
    this.drawOver();
    this.parts.span.textContent = duration(this.time.span);
    this.whenDrawn();
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeAddress(), WRITE_ADDRESS_MS) as unknown as number;
  }

  drawOver(): void {
    const { chosen, hovered, range, relations } = this, has = chosen !== NONE;
    this.overlay.draw({ chosen, hovered, range, family: has ? relations.family(chosen) : [], arrows: has ? this.arrows : [] }, this.look);
  }

  private arrows: ReturnType<Relations["arrows"]> = [];

  private dress(): void {
    this.look = currentLook();
    this.paint = paint(this.head.names, this.look.dark, this.look.paper);
    this.minimap.forget();
    this.colourMatches();
    this.parts.legend.replaceChildren(...this.legend());
  }

  private colourMatches(): void {
    const { full, faded } = this.paint, { matches } = this.search_;
    this.colours = matches ? full.map((colour, name) => (matches.names[name] ? colour : faded[name]!)) : full;
  }

  private box(): Size {
    const { width, height } = this.parts.stage.getBoundingClientRect();
    return { width, height, ratio: window.devicePixelRatio || 1 };
  }

  private resize(): void {
    const box = this.box(), { ratio } = box;
    this.picture.resize(box);
    this.limitHeight();
    this.overlay.resize(ratio);
    this.minimap.resize(ratio);
    this.draw();
  }

  /** A trace with few rows needs no large stage. */
  private limitHeight(): void {
    this.parts.stage.style.maxHeight = `${Math.max(LEAST_HEIGHT, TOP + this.picture.layout.height + LANE)}px`;
  }

  /** Folds or unfolds tracks together. */
  fold(groups: readonly Group[]): void {
    const open = !groups.some((group) => group.open);
    for (const group of groups) group.open = open;
    this.placed();
  }

  private placed(): void {
    this.picture.place();
    this.limitHeight();
    this.redraw();
  }

  /** The colours of what the trace has: GPU operations, calls, and a button for each cause of idle time, which goes through its gaps. */
  private *legend(): Generator<HTMLElement> {
    const names = this.head.names.filter((_, number) => this.events.counts[number]), kinds = new Set(names.map((name) => name.kind));
    for (const [title, shown] of LEGENDS) {
      const entries = shown.flatMap(([kind, word]) => (kinds.has(kind) ? [make("li", {}, swatch(ofKind(kind, this.look.dark)), word)] : []));
      if (entries.length) yield make("ul", { class: "legend", "aria-label": title }, make("li", { class: "quiet" }, title), ...entries);
    }
    const gaps = names.flatMap(({ cause, short, text }) => cause === null ? [] : [make("li", {},
      make("button", { type: "button", class: "plain", title: "Go through these gaps, the largest first", onclick: () => this.throughGaps(cause) }, swatch(ofCause(cause)), short || text))]);
    if (gaps.length) yield make("ul", { class: "legend", "aria-label": "Idle" }, make("li", { class: "quiet" }, "Idle"), ...gaps);
  }

  throughGaps(cause: string): void {
    const { events } = this, numbers = this.head.names.flatMap((name, number) => (name.cause === cause ? [number] : []));
    this.parts.find.value = `idle: ${cause.replaceAll("_", " ")}`;
    this.search_.seekNames(numbers);
    const rows: number[] = [];
    for (const lane of events.lanes) if (lane.group.track.kind === "idle") for (let i = lane.first; i < lane.beyond; i++) if (numbers.includes(events.name[i]!)) rows.push(i);
    rows.sort((a, b) => events.duration(b) - events.duration(a));
    this.gaps = { rows, at: -1 };
    this.afterSearch();
    this.nextGap();
  }

  nextGap(): void {
    const { gaps } = this;
    if (!gaps?.rows.length) return;
    gaps.at = (gaps.at + 1) % gaps.rows.length;
    this.choose(gaps.rows[gaps.at]!, true);
    this.parts.found.textContent = `gap ${count(gaps.at + 1)} of ${count(gaps.rows.length)}, the largest first: G for the next`;
  }

  seek(text: string): void {
    this.gaps = null;
    this.search_.seek(text);
    this.afterSearch();
  }

  private afterSearch(): void {
    const { found, next, previous } = this.parts, { matches, total } = this.search_;
    found.textContent = matches ? several(total, "match", "matches") : "";
    next.disabled = previous.disabled = !total;
    this.colourMatches();
    this.redraw();
  }

  next(way: 1 | -1): void {
    const found = this.search_.next(way, this.chosen, way > 0 ? this.time.start : this.time.end);
    if (found !== NONE) this.choose(found, true);
  }

  /** Selects a row and describes it; with `reveal`, moves the view there if needed. */
  choose(i: number, reveal = false): void {
    const { panel } = this.parts, { events } = this;
    this.chosen = i;
    this.arrows = i === NONE ? [] : this.relations.arrows(i);
    panel.hidden = i === NONE && !this.range;
    if (panel.hidden) this.picture.covered = 0;
    if (i !== NONE) {
      const kind = this.head.names[events.name[i]!]!, pixel = this.paint.full[events.name[i]!]!;
      this.show(make("h3", {}, swatch([pixel & 255, (pixel >>> 8) & 255, (pixel >>> 16) & 255]), kind.cause !== null ? kind.text : events.label(i)), this.details.same(i), this.details.element(i));
      if (reveal) this.reveal(i);
    } else if (this.range) this.describeRange();
    this.redraw();
  }

  selectRange(range: readonly [number, number] | null): void {
    this.range = range && [Math.max(0, Math.min(...range)), Math.min(this.time.length, Math.max(...range))];
    if (this.range) { this.chosen = NONE; this.arrows = []; }
    this.parts.panel.hidden = !this.range && this.chosen === NONE;
    if (this.range) this.describeRange();
    this.redraw();
  }

  private describeRange(): void {
    const [start, end] = this.range!;
    const zoom = make("button", { type: "button", onclick: () => this.time.glide(start, end) }, "Zoom here");
    this.show(make("h3", {}, `Selected ${duration(end - start)}`), zoom, totalsElement(this.events, start, end, (text) => this.search(text)));
  }

  private show(title: HTMLElement, beside: HTMLElement, body: HTMLElement): void {
    const close = make("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => { this.selectRange(null); this.choose(NONE); this.parts.view.focus({ preventScroll: true }); } }, "×");
    this.parts.panel.replaceChildren(make("div", { class: "title" }, title, beside, close), body);
  }

  private reveal(i: number): void {
    const { events, time } = this, lane = events.laneOf(i), length = events.duration(i), begin = events.start[i]!;
    if (!lane.group.open && !STREAMS.includes(lane.group.track.kind)) this.fold([lane.group]);
    const around = Math.max(length * 8, 40_000);
    if (length > time.span * 0.9 || length / time.span < 0.004) time.glide(Math.max(0, begin - around), Math.min(time.length, begin + length + around));
    else if (begin < time.start || begin + length > time.end) time.glide(begin + length / 2 - time.span / 2, begin + length / 2 + time.span / 2);
    this.scrollTo([i, ...this.relations.family(i)]);
  }

  /** Scrolls the threads so that these rows are on the screen, above the panel; the first counts if they do not fit. */
  private scrollTo(rows: readonly number[]): void {
    const { picture } = this, { pinned } = picture.layout, { view, panel } = this.parts;
    picture.covered = Math.max(0, view.getBoundingClientRect().bottom - panel.getBoundingClientRect().top);
    const room = Math.max(2 * LANE, picture.height - picture.covered - TOP - pinned);
    const ys = rows.map((k) => picture.layout.of(this.events.laneOf(k))).filter((row) => row !== undefined && row.y >= pinned).map((row) => row!.y);
    if (!ys.length) return;
    let low = Math.min(...ys), high = Math.max(...ys) + LANE;
    if (high - low > room) { low = ys[0]!; high = low + LANE; }
    if (low - picture.scroll < pinned) picture.scroll = low - pinned - HEAD;
    else if (high - picture.scroll > pinned + room) picture.scroll = Math.min(low - pinned - HEAD, high - pinned - room + 6);
  }

  toggle(kind: "python"): void {
    this.fold(this.events.groups.filter((group) => group.track.kind === kind));
  }

  fit(i: number): void {
    const margin = this.events.duration(i) * 0.15 + 200;
    this.time.glide(this.events.start[i]! - margin, this.events.end[i]! + margin);
  }

  /** Where the link of the selected row leads. */
  followLink(): void {
    const { chosen, relations, events } = this;
    if (chosen === NONE) return;
    const linked = events.link[chosen]!;
    const to = linked !== NONE ? linked : relations.launched(chosen)[0] ?? (events.kind(chosen) === "ops" ? relations.backwardOf(chosen)[0] ?? relations.workOf(chosen)[0] : undefined);
    if (to !== undefined) this.choose(to, true);
  }

  private openAddress(): void {
    const { at, event, range } = fromHash(location.hash);
    if (at && at[1] > at[0]) this.time.move(at[0], at[1]);
    if (range) this.selectRange(range);
    if (event !== undefined && event < this.head.events && this.events.laneOf(event).ready) this.choose(event);
    if (at || range || event !== undefined) this.parts.stage.scrollIntoView({ block: "center" });
  }

  private writeAddress(): void {
    const { time, chosen, range, opening } = this, unmoved = time.start === opening[0] && time.end === opening[1];
    const hash = toHash({ ...(unmoved ? {} : { at: [time.start, time.end] as const }), ...(chosen !== NONE ? { event: chosen } : {}), ...(range ? { range } : {}) });
    if (!hash && !/^#(at|event|range)=/.test(location.hash)) return;
    try { history.replaceState(null, "", hash ? `#${hash}` : location.href.split("#")[0]!); } catch { /* a sandboxed frame has no history */ }
  }
}

