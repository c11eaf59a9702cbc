/** The main picture: lanes rastered into one ImageData, and on top of it labels, ruler, steps and the tracks' names. */

import { duration } from "../words";
import type { Paint } from "./colours";
import type { Events, Lane } from "./events";
import { GUTTER, HEAD, LANE, Layout, RULER, STEPS, TOP, type Row } from "./layout";
import { FONT, type Look } from "./look";
import { Raster, type Matches } from "./raster";
import type { TimeWindow } from "./window";

/** Rows narrower than this have no label; space between two ticks of the ruler. Pixels. */
const LEAST_LABEL = 26, TICK = 110;

export interface Box {
  readonly x: number;
  readonly right: number;
  readonly y: number;
  readonly height: number;
  readonly row: Row;
}

/** A row's label: the event, its edges, and the row's upper edge. */
interface Label {
  readonly i: number;
  readonly left: number;
  readonly right: number;
  readonly y: number;
  readonly floor: number;
}

/** Of the stage, in pixels of the page, and how many pixels of the screen each has. */
export interface Size {
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
}

export class Picture {
  layout: Layout;
  scroll = 0;
  /** Height at the bottom that something else covers: rows can be scrolled out from under it. */
  covered = 0;
  width = 64;
  height = 64;
  /** Milliseconds that the last drawing took: pixels alone, and everything. */
  readonly took = { raster: 0, draw: 0 };
  private readonly context: CanvasRenderingContext2D;
  private size: Size = { width: 0, height: 0, ratio: 1 };
  private ratio = 1;
  private raster: Raster;
  private image: ImageData;
  private pixels: Uint32Array;
  private ground: Uint32Array;
  private readonly textWidths = new Map<string, number>();

  constructor(private readonly canvas: HTMLCanvasElement, private readonly events: Events, private readonly time: TimeWindow) {
    this.context = canvas.getContext("2d", { alpha: false })!;
    this.layout = new Layout(events, 0);
    this.raster = new Raster(events, 1);
    this.image = new ImageData(1, 1);
    this.pixels = this.ground = new Uint32Array(1);
  }

  /** Whether it was drawn at this size. */
  has({ width, height, ratio }: Size): boolean {
    return this.size.width === width && this.size.height === height && this.size.ratio === ratio;
  }

  resize(size: Size): void {
    const { width, height, ratio } = this.size = size;
    this.width = Math.max(GUTTER + 64, Math.floor(width));
    this.height = Math.max(TOP + 32, Math.floor(height));
    this.ratio = ratio;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    const wide = Math.floor((this.width - GUTTER) * ratio), tall = Math.floor((this.height - TOP) * ratio);
    this.image = new ImageData(wide, tall);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.raster = new Raster(this.events, wide);
    this.ground = new Uint32Array(wide);
    this.place();
  }

  /** Finds every row's place anew, after a track was folded. */
  place(): void {
    this.layout = new Layout(this.events, this.height - TOP);
  }

  x(time: number): number {
    return GUTTER + ((time - this.time.start) / this.time.span) * (this.width - GUTTER);
  }

  timeAt(x: number): number {
    return this.time.start + ((x - GUTTER) / (this.width - GUTTER)) * this.time.span;
  }

  /** Upper edge of a row on the screen; devices stay when threads scroll. */
  screenY(row: Row): number {
    return TOP + row.y - (row.y < this.layout.pinned ? 0 : this.scroll);
  }

  box(i: number): Box | null {
    const row = this.layout.of(this.events.laneOf(i));
    if (!row) return null;
    const x = this.x(this.events.start[i]!);
    return { x, right: Math.max(this.x(this.events.end[i]!), x + 2), y: this.screenY(row), height: row.height - (row.thin ? 0 : 1), row };
  }

  /** The row at a height; a label is taller than the thin row that it names. */
  rowAt(y: number, byLabel = false): Row | undefined {
    const { rows, pinned } = this.layout, inPinned = y < TOP + pinned;
    return rows.find((row) => row.y < pinned === inPinned && y >= this.screenY(row) && y < this.screenY(row) + Math.max(row.height, byLabel && row.toggles ? LANE : 0));
  }

  /** The event under a point; where many share a column, the longest of them. NONE if there is none. */
  eventAt(x: number, y: number): number {
    const row = x < GUTTER || y < TOP ? undefined : this.rowAt(y), lane: Lane | undefined = row?.lane;
    if (!lane?.ready || y >= this.screenY(row!) + row!.height) return -1;
    const { events } = this, unit = this.time.span / (this.width - GUTTER), time = this.timeAt(x), i = events.after(lane, time - unit);
    if (i >= lane.beyond || events.start[i]! > time + unit * 1.5) return -1;
    const j = events.leap(i, lane.beyond, time + unit);
    if (j - i <= 1) return i;
    return events.start[i]! <= time && events.end[i]! > time && events.duration(i) > unit * 2 ? i : events.longest(i, j);
  }

  draw(look: Look, paint: Paint, colours: Uint32Array, matches: Matches | null): void {
    const began = performance.now(), { layout, context, ratio } = this;
    this.scroll = Math.max(0, Math.min(this.scroll, layout.height - (this.height - this.covered - TOP) + 8));
    const tick = tickOf(this.time.span, (this.width - GUTTER) / TICK), labels: Label[] = [];
    this.background(look, tick);
    const { pinned } = layout;
    for (const row of layout.rows) if (row.y >= pinned) this.lane(row, pinned, colours, matches, labels);
    for (const row of layout.rows) if (row.y < pinned) this.lane(row, 0, colours, matches, labels);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.putImageData(this.image, Math.round(GUTTER * ratio), Math.round(TOP * ratio));
    this.took.raster = performance.now() - began;
    this.labels(labels, look, paint, matches);
    this.ruler(look, tick);
    this.names(look);
    this.took.draw = performance.now() - began;
  }

  private background(look: Look, tick: number): void {
    const { ground, pixels, time } = this, width = ground.length, height = this.image.height, scale = width / time.span;
    ground.fill(look.pixels.paper);
    for (let t = Math.ceil(time.start / tick) * tick; t < time.end; t += tick) ground[Math.min(width - 1, Math.floor((t - time.start) * scale))] = look.pixels.grid;
    for (const step of this.events.head.steps) for (const t of [step.start_ns, step.end_ns]) if (t > time.start && t < time.end) ground[Math.floor((t - time.start) * scale)] = look.pixels.rule;
    pixels.set(ground, 0);
    for (let filled = 1; filled < height; filled *= 2) pixels.copyWithin(filled * width, 0, Math.min(filled, height - filled) * width);
  }

  private lane(row: Row, floor: number, colours: Uint32Array, matches: Matches | null, labels: Label[]): void {
    if (!row.lane?.ready) return;
    const { ratio, raster, pixels } = this, width = raster.width, height = this.image.height, y = this.screenY(row) - TOP;
    if (y + row.height <= floor || y >= this.height - TOP) return;
    raster.line.set(this.ground);
    const least = LEAST_LABEL * ratio;
    const wide = row.thin ? null : (i: number, left: number, right: number): void => { if (right - left > least) labels.push({ i, left: left / ratio, right: right / ratio, y, floor }); };
    if (!raster.draw(row.lane, this.time.start, width / this.time.span, colours, matches, wide)) return;
    const top = Math.max(Math.round(floor * ratio), Math.round(y * ratio)), bottom = Math.min(height, Math.round((y + row.height - (row.thin ? 0 : 1)) * ratio));
    for (let at = top; at < bottom; at++) pixels.set(raster.line, at * width);
  }

  private fitted(text: string, room: number): string {
    let width = this.textWidths.get(text);
    if (width === undefined) this.textWidths.set(text, (width = this.context.measureText(text).width));
    if (width <= room) return text;
    const kept = Math.floor((text.length * (room - 8)) / width);
    return kept < 2 ? "" : `${text.slice(0, kept)}…`;
  }

  private labels(labels: readonly Label[], look: Look, paint: Paint, matches: Matches | null): void {
    const { context, events } = this;
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const inkOf = (name: number): string => (matches && !matches.names[name] ? look.css.dim : paint.darkInk[name] ? "#14181d" : "#fff");
    for (const ink of ["#14181d", "#fff", look.css.dim]) { // a change of ink costs more than a second look at the list
      context.fillStyle = ink;
      for (const { i, left, right, y, floor } of labels) {
        if (inkOf(events.name[i]!) !== ink || y + 4 < floor) continue;
        const text = this.fitted(events.label(i), right - left - 8);
        if (text) context.fillText(text, GUTTER + left + 4, TOP + y + LANE / 2);
      }
    }
  }

  private ruler(look: Look, tick: number): void {
    const { context, time, width } = this, { steps } = this.events.head;
    context.fillStyle = look.css.paper;
    context.fillRect(0, 0, width, TOP);
    context.fillStyle = look.css.dim;
    const [unit, by] = time.end >= 1e9 ? ["s", 1e9] as const : time.end >= 1e6 ? ["ms", 1e6] as const : ["µs", 1e3] as const;
    const decimals = Math.max(0, -Math.floor(Math.log10(tick / by) + 1e-9));
    for (let t = Math.ceil(time.start / tick) * tick; t < time.end; t += tick) {
      const x = this.x(t);
      const text = `${(t / by).toFixed(decimals)} ${unit}`;
      context.fillRect(Math.floor(x), RULER - 6, 1, 6);
      if (x + 4 + context.measureText(text).width <= width) context.fillText(text, x + 4, RULER / 2 + 1);
    }
    context.save();
    context.beginPath();
    context.rect(GUTTER, RULER, width - GUTTER, STEPS);
    context.clip();
    steps.forEach((step) => {
      const left = this.x(step.start_ns), right = this.x(step.end_ns);
      if (right < GUTTER || left > width) return;
      context.fillStyle = look.css.band;
      context.fillRect(left, RULER, Math.max(1, right - left - 1), STEPS - 3);
      const from = Math.max(left, GUTTER), text = this.fitted(`${step.name}  ${duration(step.length_ns)}`, Math.min(right, width) - from - 10);
      context.fillStyle = look.css.dim;
      if (text) context.fillText(text, from + 5, RULER + STEPS / 2 - 1);
    });
    context.restore();
  }

  private names(look: Look): void {
    const { context, layout, height } = this, { rows, pinned } = layout;
    context.fillStyle = look.css.paper;
    context.fillRect(0, TOP, GUTTER, height);
    context.fillStyle = look.css.rule;
    context.fillRect(GUTTER - 1, 0, 1, height);
    context.save();
    context.beginPath();
    context.rect(0, TOP + pinned, this.width, height);
    context.clip();
    for (const row of rows) if (row.y >= pinned) this.rowName(row, look);
    context.restore();
    for (const row of rows) if (row.y < pinned) this.rowName(row, look);
    context.fillStyle = look.css.rule;
    context.fillRect(0, TOP - 1, this.width, 1);
    if (pinned) context.fillRect(0, TOP + pinned - 1, this.width, 1);
    context.fillStyle = look.css.dim;
    context.font = `11px ${FONT}`;
    if (this.events.head.steps.length) context.fillText("steps", 10, RULER + STEPS / 2 - 1);
  }

  private rowName(row: Row, look: Look): void {
    const { context } = this, y = this.screenY(row);
    if (y > this.height || y + HEAD < TOP) return;
    if (row.title !== undefined) {
      context.fillStyle = look.css.ink;
      context.font = `600 11px ${FONT}`;
      if (row.toggles) this.arrow(row, y + HEAD / 2 + 2);
      // No lane is beside a title, so that it may be as wide as the picture.
      context.fillText(this.fitted(row.title, this.width - 30), row.toggles ? 22 : 10, y + HEAD / 2 + 2);
    } else if (row.label) {
      context.fillStyle = look.css.dim;
      context.font = `11px ${FONT}`;
      context.fillText(this.fitted(row.label, GUTTER - 30), 22, y + LANE / 2);
      if (row.toggles) this.arrow(row, y + LANE / 2);
    }
  }

  private arrow(row: Row, y: number): void {
    this.context.fillText(row.toggles?.some((group) => group.open) ? "▾" : "▸", 10, y);
  }
}

/** A round distance between ticks: 1, 2 or 5 times a power of ten. */
export function tickOf(span: number, most: number): number {
  const rough = span / Math.max(2, most), power = 10 ** Math.floor(Math.log10(rough)), lead = rough / power;
  return power * (lead > 5 ? 10 : lead > 2 ? 5 : lead > 1 ? 2 : 1);
}
