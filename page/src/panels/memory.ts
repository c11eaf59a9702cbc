/** Allocated and reserved memory over time. A click shows the moment on the timeline. */

import type { Curve, MemoryCurves } from "../contract";
import { draw, fitted, make } from "../dom";
import type { Page } from "../page";
import { duration, size } from "../words";

const MOST_WIDE = 1000, HEIGHT = 220, LEFT = 76, RIGHT = 12, TOP = 12, BOTTOM = 26;
/** Reserved memory is drawn up to so many times the allocated peak; beyond, it would flatten the curve. */
const MOST_ROOM = 3;

/** The value that holds at a moment: that of the last point before it. */
export function at(times: readonly number[], moment: number): number {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) <= moment) low = middle + 1; else high = middle;
  }
  return Math.max(low - 1, 0);
}

export function memory(data: MemoryCurves, element: HTMLElement, page: Page): void {
  for (const curve of data.curves) {
    const most = Math.max(1, ...curve.allocated_bytes), held = Math.max(0, ...curve.reserved_bytes);
    const reserved = held ? `, ${size(held)} reserved${held > top(most, held) ? " (far above the picture)" : " (dashed)"}` : "";
    const facts = make("p", { class: "quiet", role: "status" });
    element.append(make("h3", {}, curve.title, make("small", {}, `peak ${size(most)} allocated${reserved}`)));
    fitted(element, MOST_WIDE, (width) => chart(curve, width, facts, page));
    element.append(facts);
  }
}

/** The highest value that is drawn. */
const top = (most: number, held: number): number => (held <= MOST_ROOM * most ? Math.max(most, held) : most);

function chart(curve: Curve, width: number, facts: HTMLElement, page: Page): SVGElement {
  const first = curve.times_ns[0] ?? 0, last = Math.max(curve.times_ns.at(-1) ?? 0, first + 1);
  const most = Math.max(1, ...curve.allocated_bytes), held = Math.max(0, ...curve.reserved_bytes), peak = curve.allocated_bytes.indexOf(most);
  const highest = top(most, held);
  const atX = (time: number): number => LEFT + ((time - first) / (last - first)) * (width - LEFT - RIGHT);
  const atY = (bytes: number): number => HEIGHT - BOTTOM - (bytes / highest) * (HEIGHT - TOP - BOTTOM);
  const line = (values: readonly number[]): string => values.map((value, place) => `${place ? `H${atX(curve.times_ns[place] ?? 0).toFixed(1)}V` : `M${atX(first)} `}${atY(value).toFixed(1)}`).join("") + `H${width - RIGHT}`;
  const say = (place: number): void => {
    const reserved = curve.reserved_bytes[place];
    facts.textContent = `${duration(curve.times_ns[place] ?? 0)}: ${size(curve.allocated_bytes[place] ?? 0)} allocated${reserved === undefined ? "" : `, ${size(reserved)} reserved`}`;
  };
  const moment = (event: MouseEvent): number => {
    const box = picture.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * width;
    return at(curve.times_ns, first + ((x - LEFT) / (width - LEFT - RIGHT)) * (last - first));
  };
  const go = (place: number): void => { const time = curve.times_ns[place] ?? 0, around = (last - first) / 50; page.goTo(time - around, time + around); };
  let cursor = peak;
  const mark = draw("circle", { r: 4, class: "mark", cx: 0, cy: 0 });
  const move = (place: number): void => { cursor = place; mark.setAttribute("cx", String(atX(curve.times_ns[place] ?? 0))); mark.setAttribute("cy", String(atY(curve.allocated_bytes[place] ?? 0))); say(place); };
  const picture = draw("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, class: "chart memory", role: "slider", tabindex: 0, "aria-label": `Memory of ${curve.title}, peak ${size(curve.allocated_bytes[peak] ?? 0)}`,
    "aria-valuemin": 0, "aria-valuemax": curve.times_ns.length - 1, "aria-valuenow": peak,
    onmousemove: (event) => move(moment(event as MouseEvent)), onclick: (event) => go(moment(event as MouseEvent)),
    onkeydown: (event) => {
      const { key } = event as KeyboardEvent, step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
      if (step) { event.preventDefault(); move(Math.min(Math.max(cursor + step, 0), curve.times_ns.length - 1)); picture.setAttribute("aria-valuenow", String(cursor)); picture.setAttribute("aria-valuetext", facts.textContent ?? ""); }
      else if (key === "Enter") go(cursor);
    },
  });
  for (const part of [0, 0.5, 1]) picture.append(draw("path", { class: "grid", d: `M${LEFT} ${atY(part * highest)}H${width - RIGHT}` }), draw("text", { x: LEFT - 8, y: atY(part * highest), class: "end dim" }, size(part * highest)));
  for (const part of width < 600 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) picture.append(draw("text", { x: atX(first + part * (last - first)), y: HEIGHT - 8, class: part === 1 ? "end dim" : "middle dim" }, duration(first + part * (last - first))));
  if (highest >= held && held) picture.append(draw("path", { class: "reserved", d: line(curve.reserved_bytes) }));
  picture.append(draw("path", { class: "area", d: `${line(curve.allocated_bytes)}V${atY(0)}H${LEFT}z` }), draw("path", { class: "allocated", d: line(curve.allocated_bytes) }), mark);
  move(peak);
  return picture;
}
