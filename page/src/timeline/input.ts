/** Pointer, wheel and keys. */

import { make } from "../dom";
import { count, duration } from "../words";
import { NONE } from "./events";
import { GUTTER, TOP } from "./layout";
import type { Timeline } from "./timeline";

/** Pixels that a pointer moves before it drags. */
const DRAG = 4;
const MOST_WHEEL = 240, SCROLL_STEP = 60;
/** Shares of the view by which its left and right edge move. */
const MOVES: Readonly<Record<string, readonly [number, number]>> = { w: [0.2, -0.2], s: [-0.25, 0.25], a: [-0.2, -0.2], d: [0.2, 0.2] };

export function listen(timeline: Timeline): void {
  pointer(timeline);
  wheel(timeline);
  keys(timeline);
  const { find, next, previous, whole, help, keys: dialog } = timeline.parts;
  find.addEventListener("input", () => timeline.seek(find.value));
  next.addEventListener("click", () => timeline.next(1));
  previous.addEventListener("click", () => timeline.next(-1));
  whole.addEventListener("click", () => timeline.time.glide(0, timeline.time.length));
  help.addEventListener("click", () => dialog.showModal());
}

function hint(timeline: Timeline, event: PointerEvent): void {
  const { events, picture, time, relations } = timeline, { tip, view } = timeline.parts, i = picture.eventAt(event.offsetX, event.offsetY);
  if (i !== timeline.hovered) { timeline.hovered = i; timeline.drawOver(); }
  view.style.cursor = event.offsetX < GUTTER ? "default" : event.offsetY < TOP ? "col-resize" : i !== NONE ? "pointer" : "grab";
  tip.hidden = i === NONE;
  if (i === NONE) return;
  const unit = time.span / (picture.width - GUTTER), others = events.leap(i, events.laneOf(i).beyond, events.start[i]! + unit) - i - 1, op = relations.opOf(i);
  tip.replaceChildren(make("b", {}, events.label(i)), make("span", {}, duration(events.duration(i))));
  if (events.kind(i) === "gpu" && op !== NONE) tip.append(make("span", {}, events.text(op)));
  if (events.kind(i) === "idle" && events.link[i] !== NONE) tip.append(make("span", {}, `before ${events.label(events.link[i]!)}`));
  if (others > 0 && events.duration(i) < unit * 2) tip.append(make("em", {}, `${count(others + 1)} events in this column`));
  const { offsetWidth: w, offsetHeight: h } = tip, below = event.offsetY + 18;
  tip.style.transform = `translate(${Math.min(event.offsetX + 14, picture.width - w - 6)}px, ${below + h > picture.height ? event.offsetY - h - 10 : below}px)`;
}

interface Grip {
  readonly x: number;
  readonly y: number;
  readonly start: number;
  readonly end: number;
  readonly scroll: number;
  readonly selects: boolean;
  moved: boolean;
}

function pointer(timeline: Timeline): void {
  const { picture, time, parts: { view, tip } } = timeline, fingers = new Map<number, PointerEvent>();
  let grip: Grip | null = null;
  view.addEventListener("pointerdown", (event) => {
    view.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    time.stop();
    const selects = event.offsetX >= GUTTER && (event.shiftKey || event.offsetY < TOP);
    grip = { x: event.offsetX, y: event.offsetY, start: time.start, end: time.end, scroll: picture.scroll, selects, moved: false };
  });
  view.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before || !grip) { hint(timeline, event); return; }
    fingers.set(event.pointerId, event);
    if (fingers.size === 2) {
      const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId)!;
      const was = Math.abs(before.offsetX - other.offsetX), is = Math.abs(event.offsetX - other.offsetX);
      if (was > 8 && is > 8) time.zoom(was / is, picture.timeAt((event.offsetX + other.offsetX) / 2));
      picture.scroll -= (event.offsetY - before.offsetY) / 2;
      grip.moved = true;
      return;
    }
    const dx = event.offsetX - grip.x, dy = event.offsetY - grip.y;
    if (!grip.moved && Math.hypot(dx, dy) < DRAG) return;
    grip.moved = true;
    tip.hidden = true;
    if (grip.selects) { timeline.selectRange([picture.timeAt(Math.max(GUTTER, grip.x)), picture.timeAt(Math.max(GUTTER, event.offsetX))]); return; }
    view.style.cursor = "grabbing";
    const shift = (-dx / (picture.width - GUTTER)) * (grip.end - grip.start);
    picture.scroll = grip.scroll - dy;
    time.move(grip.start + shift, grip.end + shift);
  });
  const lift = (event: PointerEvent): void => {
    fingers.delete(event.pointerId);
    if (grip && !grip.moved && event.type === "pointerup") click(timeline, event);
    if (!fingers.size) grip = null;
  };
  view.addEventListener("pointerup", lift);
  view.addEventListener("pointercancel", lift);
  view.addEventListener("pointerleave", () => { tip.hidden = true; timeline.hovered = NONE; timeline.drawOver(); });
  view.addEventListener("dblclick", (event) => { const i = picture.eventAt(event.offsetX, event.offsetY); if (i !== NONE) timeline.fit(i); });
}

function click(timeline: Timeline, event: PointerEvent): void {
  const { picture } = timeline;
  if (event.offsetX >= GUTTER) {
    timeline.selectRange(null);
    timeline.choose(picture.eventAt(event.offsetX, event.offsetY));
    return;
  }
  const groups = picture.rowAt(event.offsetY, true)?.toggles;
  if (groups) timeline.fold(groups);
}

function wheel(timeline: Timeline): void {
  const { picture, time, parts: { view, tip } } = timeline;
  view.addEventListener("wheel", (event) => {
    // Without the focus, a plain wheel scrolls the page.
    const across = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !across && document.activeElement !== view) return;
    event.preventDefault();
    tip.hidden = true;
    time.stop();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1, dx = event.deltaX * unit, dy = event.deltaY * unit;
    if (event.offsetX < GUTTER) { picture.scroll += dy; timeline.redraw(); }
    else if (across) time.pan(((dx || dy) / (picture.width - GUTTER)) * time.span);
    else time.zoom(Math.exp(Math.max(-MOST_WHEEL, Math.min(MOST_WHEEL, dy)) * (event.ctrlKey ? 0.01 : 0.0022)), picture.timeAt(event.offsetX));
  }, { passive: false });
}

function keys(timeline: Timeline): void {
  const { find, view, keys: dialog, panel } = timeline.parts;
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { timeline.next(event.shiftKey ? -1 : 1); event.preventDefault(); }
    if (event.key === "Escape") { find.value = ""; timeline.seek(""); view.focus(); }
    event.stopPropagation();
  });
  addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || dialog.open) return;
    const target = event.target as HTMLElement;
    if (target !== view && target !== document.body && !panel.contains(target)) return;
    if (target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
    if (target === document.body && event.key.startsWith("Arrow")) return; // they scroll the page
    if (press(timeline, event)) event.preventDefault();
  });
}

/** Does what a key means; whether it means something. */
function press(timeline: Timeline, event: KeyboardEvent): boolean {
  const { time, picture, chosen, events } = timeline, key = event.key.length === 1 ? event.key.toLowerCase() : event.key, move = MOVES[key];
  if (move) { time.glide(time.start + move[0] * time.span, time.end + move[1] * time.span); return true; }
  switch (key) {
    case "?": timeline.parts.keys.showModal(); return true;
    case "/": timeline.parts.find.focus(); timeline.parts.find.select(); return true;
    case "n": timeline.next(event.shiftKey ? -1 : 1); return true;
    case "0": time.glide(0, time.length); return true;
    case "f": if (chosen !== NONE) timeline.fit(chosen); return true;
    case "l": timeline.followLink(); return true;
    case "g": timeline.nextGap(); return true;
    case "p": timeline.toggle("python"); return true;
    case "t": timeline.fold(picture.layout.rows.flatMap((row) => (row.title !== undefined && row.toggles) || [])); return true;
    case "r": timeline.selectRange([time.start, time.end]); return true;
    case "Enter": if (chosen === NONE) timeline.choose(middle(timeline)); return true;
    case "Escape": timeline.selectRange(null); if (chosen !== NONE) timeline.choose(NONE); else { timeline.parts.find.value = ""; timeline.seek(""); } return true;
    case "ArrowLeft": case "ArrowRight": {
      const way = key === "ArrowRight" ? 1 : -1;
      if (chosen === NONE) { time.glide(time.start + 0.15 * way * time.span, time.end + 0.15 * way * time.span); return true; }
      const lane = events.laneOf(chosen), to = chosen + way;
      if (to >= lane.first && to < lane.beyond) timeline.choose(to, true);
      return true;
    }
    case "ArrowUp": case "ArrowDown": {
      const way = key === "ArrowDown" ? 1 : -1;
      if (chosen === NONE) { picture.scroll += SCROLL_STEP * way; timeline.redraw(); return true; }
      const to = timeline.relations.neighbour(chosen, way);
      if (to !== NONE) timeline.choose(to, true);
      return true;
    }
    default: return false;
  }
}

/** The event in the middle of the view, of the first lane that has one there. */
function middle(timeline: Timeline): number {
  const { events, time } = timeline, at = (time.start + time.end) / 2;
  for (const lane of events.lanes.filter((one) => one.ready).sort((a, b) => Number(b.group.track.kind === "gpu") - Number(a.group.track.kind === "gpu"))) {
    const i = events.after(lane, at);
    if (i < lane.beyond && events.start[i]! < time.end) return i;
  }
  return NONE;
}
