/** The roofline: each op as a dot below the device's ceilings, both axes logarithmic. */

import type { Dot, Roofline } from "../contract";
import { draw, fitted, make, roving } from "../dom";
import type { Page } from "../page";
import { count, duration, share, size } from "../words";
import { showRow } from "./tables";

const MOST_WIDE = 1000, LEAST_TALL = 300, LEFT = 66, RIGHT = 22, TOP = 20, BOTTOM = 46;

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
  const facts = make("p", { class: "quiet", role: "status" }, `${data.device}. The drawn ops take ${share(data.drawn_ns, data.total_ns)} of the GPU time; the larger the dot, the longer. Click one, or use the arrow keys.`);
  fitted(element, MOST_WIDE, (width) => chartOf(data, width, facts, page));
  element.append(legend(), facts);
}

function chartOf(data: Roofline, width: number, facts: HTMLElement, page: Page): SVGElement {
  const height = Math.max(LEAST_TALL, width * 0.52);
  const { x: [xLow, xHigh], y: [yLow, yHigh] } = axes(data);
  const atX = (value: number): number => LEFT + ((Math.log10(value) - xLow) / (xHigh - xLow)) * (width - LEFT - RIGHT);
  const atY = (value: number): number => height - BOTTOM - ((Math.log10(value) - yLow) / (yHigh - yLow)) * (height - TOP - BOTTOM);
  const chart = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart roofline", role: "group", "aria-label": `Roofline of ${data.device}, ${data.dots.length} ops. Arrow keys move between them.` });
  for (let power = xLow; power <= xHigh; power++) {
    const x = atX(10 ** power);
    chart.append(draw("path", { class: "grid", d: `M${x} ${TOP}V${height - BOTTOM}` }), draw("text", { x, y: height - BOTTOM + 16, class: "middle dim" }, plain(power)));
  }
  for (let power = yLow; power <= yHigh; power++) {
    const y = atY(10 ** power);
    chart.append(draw("path", { class: "grid", d: `M${LEFT} ${y}H${width - RIGHT}` }), draw("text", { x: LEFT - 8, y, class: "end dim" }, plain(power - 12)));
  }
  chart.append(draw("text", { x: (LEFT + width) / 2, y: height - 8, class: "middle dim" }, "arithmetic intensity (FLOP per byte)"),
    draw("text", { x: 16, y: height / 2, class: "middle dim", transform: `rotate(-90 16 ${height / 2})` }, "TFLOP/s"));
  const bandwidth = data.memory.value, highest = Math.max(...data.compute.map((one) => one.value), 10 ** yLow);
  const start = Math.max(10 ** xLow, 10 ** yLow / bandwidth);
  const from = [atX(start), atY(start * bandwidth)] as const, to = [atX(highest / bandwidth), atY(highest)] as const;
  const turned = (Math.atan2(to[1] - from[1], to[0] - from[0]) * 180) / Math.PI, [middleX, middleY] = [0.72 * from[0] + 0.28 * to[0], 0.72 * from[1] + 0.28 * to[1]];
  const names: SVGElement[] = [draw("text", { x: middleX, y: middleY - 11, class: "middle roof-name", transform: `rotate(${turned} ${middleX} ${middleY})` }, `memory ${size(bandwidth)}/s, ${data.memory.source}`)];
  chart.append(draw("path", { class: "roof", d: `M${from.join(" ")}L${to.join(" ")}` }));
  let above = -Infinity;
  for (const one of data.compute) {
    const y = atY(one.value);
    chart.append(draw("path", { class: "roof", d: `M${atX(one.value / bandwidth)} ${y}H${width - RIGHT}` }));
    if (y - above >= 14) { names.push(draw("text", { x: width - RIGHT - 4, y: y - 11, class: "end roof-name" }, `${one.name} ${rate(one.value)}, ${one.source}`)); above = y; }
  }
  chart.append(...dots(data, Math.min(1, width / MOST_WIDE + 0.2), atX, atY, facts, page), ...names);
  return chart;
}

const plain = (power: number): string => (power >= -4 && power <= 4 ? String(10 ** power) : `1e${power}`);

function describe(dot: Dot, total: number): string {
  const roof = dot.roof_pct === null ? "" : `, ${dot.roof_pct.toFixed(1)} % of its roof`;
  return `${dot.name} ${dot.shapes}: ${duration(dot.time_ns)} in ${count(dot.calls)} calls (${share(dot.time_ns, total)} of GPU time), ${rate(dot.flops_per_second)}${roof}${dot.bound ? `, ${dot.bound}-bound` : ""}`;
}

/** The dots, small ones above large ones. */
function dots(data: Roofline, scale: number, atX: (value: number) => number, atY: (value: number) => number, facts: HTMLElement, page: Page): SVGElement[] {
  const largest = Math.max(...data.dots.map((dot) => dot.time_ns)), texts = data.dots.map((dot) => describe(dot, data.total_ns));
  const made = data.dots.map((dot, at) => draw("circle", { cx: atX(dot.intensity), cy: atY(dot.flops_per_second), r: scale * (3.5 + 13 * Math.sqrt(dot.time_ns / largest)), class: `dot ${dot.bound || "unknown-bound"}`, "aria-label": texts[at] }, draw("title", {}, texts[at] ?? "")));
  roving(made, (at) => { facts.textContent = texts[at] ?? ""; }, (at) => { const { name } = data.dots[at]!; if (!showRow(name)) page.search(name); });
  return made;
}

function legend(): HTMLElement {
  const entry = (bound: string): HTMLElement => make("li", {}, draw("svg", { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" }, draw("circle", { cx: 5, cy: 5, r: 5, class: `dot ${bound}` })), `${bound}-bound`);
  return make("ul", { class: "legend" }, ...["compute", "memory", "latency"].map(entry));
}
