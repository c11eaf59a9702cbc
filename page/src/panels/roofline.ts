/** The roofline: each op as a dot below the device's ceilings, both axes logarithmic. */

import type { Dot, Roofline } from "../contract";
import { draw, make } from "../dom";
import type { Page } from "../page";
import { count, duration, share, size } from "../words";
import { showRow } from "./tables";

const WIDTH = 1000, HEIGHT = 520, LEFT = 74, RIGHT = 24, TOP = 20, BOTTOM = 46;

/** Limits of the axes in powers of ten. */
export interface Axes { readonly x: readonly [number, number]; readonly y: readonly [number, number] }

export function axes(data: Roofline): Axes {
  const xs = [...data.dots.map((dot) => dot.intensity), ...data.compute.map((one) => one.value / data.memory.value)].map(Math.log10);
  const ys = [...data.dots.map((dot) => dot.flops_per_second), ...data.compute.map((one) => one.value)].map(Math.log10);
  const low = (values: number[]): number => Math.floor(Math.min(...values)), high = (values: number[]): number => Math.ceil(Math.max(...values) + 0.05);
  return { x: [low(xs), high(xs)], y: [low(ys), high(ys)] };
}

/** FLOP/s in a readable unit. */
export function rate(flops: number): string {
  const [divisor, unit] = flops >= 1e12 ? [1e12, "T"] : flops >= 1e9 ? [1e9, "G"] : [1e6, "M"];
  return `${(flops / divisor).toPrecision(3)} ${unit}FLOP/s`;
}

export function roofline(data: Roofline, element: HTMLElement, page: Page): void {
  const { x: [xLow, xHigh], y: [yLow, yHigh] } = axes(data);
  const atX = (value: number): number => LEFT + ((Math.log10(value) - xLow) / (xHigh - xLow)) * (WIDTH - LEFT - RIGHT);
  const atY = (value: number): number => HEIGHT - BOTTOM - ((Math.log10(value) - yLow) / (yHigh - yLow)) * (HEIGHT - TOP - BOTTOM);
  const chart = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart roofline", role: "group", "aria-label": `Roofline of ${data.device}, ${data.dots.length} ops. Arrow keys move between them.` });
  for (let power = xLow; power <= xHigh; power++) {
    const x = atX(10 ** power);
    chart.append(draw("path", { class: "grid", d: `M${x} ${TOP}V${HEIGHT - BOTTOM}` }), draw("text", { x, y: HEIGHT - BOTTOM + 16, class: "middle dim" }, plain(power)));
  }
  for (let power = yLow; power <= yHigh; power++) {
    const y = atY(10 ** power);
    chart.append(draw("path", { class: "grid", d: `M${LEFT} ${y}H${WIDTH - RIGHT}` }), draw("text", { x: LEFT - 8, y, class: "end dim" }, plain(power - 12)));
  }
  chart.append(draw("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 8, class: "middle dim" }, "arithmetic intensity (FLOP per byte)"),
    draw("text", { x: 16, y: HEIGHT / 2, class: "middle dim", transform: `rotate(-90 16 ${HEIGHT / 2})` }, "TFLOP/s"));
  const bandwidth = data.memory.value, highest = Math.max(...data.compute.map((one) => one.value), 10 ** yLow);
  const start = Math.max(10 ** xLow, 10 ** yLow / bandwidth);
  const from = [atX(start), atY(start * bandwidth)] as const, to = [atX(highest / bandwidth), atY(highest)] as const;
  const turned = (Math.atan2(to[1] - from[1], to[0] - from[0]) * 180) / Math.PI, [middleX, middleY] = [0.72 * from[0] + 0.28 * to[0], 0.72 * from[1] + 0.28 * to[1]];
  const names: SVGElement[] = [draw("text", { x: middleX, y: middleY - 11, class: "middle roof-name", transform: `rotate(${turned} ${middleX} ${middleY})` }, `memory ${size(bandwidth)}/s, ${data.memory.source}`)];
  chart.append(draw("path", { class: "roof", d: `M${from.join(" ")}L${to.join(" ")}` }));
  let above = -Infinity;
  for (const one of data.compute) {
    const y = atY(one.value);
    chart.append(draw("path", { class: "roof", d: `M${atX(one.value / bandwidth)} ${y}H${WIDTH - RIGHT}` }));
    if (y - above >= 14) { names.push(draw("text", { x: WIDTH - RIGHT - 4, y: y - 9, class: "end roof-name" }, `${one.name} ${rate(one.value)}, ${one.source}`)); above = y; }
  }
  const facts = make("p", { class: "quiet", role: "status" }, `${data.device}. The drawn ops take ${share(data.drawn_ns, data.total_ns)} of the GPU time; the larger the dot, the longer. Click one, or use the arrow keys.`);
  chart.append(...dots(data, atX, atY, facts, page), ...names);
  element.append(chart, legend(), facts);
}

const plain = (power: number): string => (power >= -4 && power <= 4 ? String(10 ** power) : `1e${power}`);

function describe(dot: Dot, total: number): string {
  const roof = dot.roof_pct === null ? "" : `, ${dot.roof_pct.toFixed(1)} % of its roof`;
  return `${dot.name} ${dot.shapes}: ${duration(dot.time_ns)} in ${count(dot.calls)} calls (${share(dot.time_ns, total)} of GPU time), ${rate(dot.flops_per_second)}${roof}${dot.bound ? `, ${dot.bound}-bound` : ""}`;
}

/** The dots, small ones above large ones; one is in the order of the Tab key, the arrows move to the others. */
function dots(data: Roofline, atX: (value: number) => number, atY: (value: number) => number, facts: HTMLElement, page: Page): SVGElement[] {
  const largest = Math.max(...data.dots.map((dot) => dot.time_ns)), made: SVGElement[] = [];
  const select = (at: number): void => {
    made.forEach((one, place) => { one.setAttribute("tabindex", place === at ? "0" : "-1"); one.classList.toggle("selected", place === at); });
    const dot = data.dots[at];
    if (dot) facts.textContent = describe(dot, data.total_ns);
  };
  data.dots.forEach((dot, at) => {
    const open = (): void => { select(at); if (!showRow(dot.name)) page.search(dot.name); };
    const keys = (event: Event): void => {
      const { key } = event as KeyboardEvent, step = key === "ArrowRight" || key === "ArrowDown" ? 1 : key === "ArrowLeft" || key === "ArrowUp" ? -1 : 0;
      if (step) { event.preventDefault(); const next = (at + step + made.length) % made.length; select(next); made[next]?.focus(); }
      else if (key === "Enter" || key === " ") { event.preventDefault(); open(); }
    };
    const text = describe(dot, data.total_ns), radius = 3.5 + 13 * Math.sqrt(dot.time_ns / largest);
    made.push(draw("circle", { cx: atX(dot.intensity), cy: atY(dot.flops_per_second), r: radius, class: `dot ${dot.bound || "unknown-bound"}`, tabindex: at === 0 ? 0 : -1, role: "button", "aria-label": text, onclick: open, onkeydown: keys, onfocus: () => select(at) }, draw("title", {}, text)));
  });
  return made;
}

function legend(): HTMLElement {
  const entry = (bound: string): HTMLElement => make("li", {}, draw("svg", { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" }, draw("circle", { cx: 5, cy: 5, r: 5, class: `dot ${bound}` })), `${bound}-bound`);
  return make("ul", { class: "legend" }, ...["compute", "memory", "latency"].map(entry));
}
