/** Each step as a bar: its length, and the part of it in which the GPU is busy. A click shows it on the timeline. */

import type { StepTimes } from "../contract";
import { draw, fitted, make, roving } from "../dom";
import type { Page } from "../page";
import { duration, share } from "../words";

const MOST_WIDE = 1000, TALL = 120, LEFT = 66, TOP = 8, BOTTOM = 22, WIDEST_BAR = 48, LABEL_PX = 34;

export function steps(data: StepTimes, element: HTMLElement, page: Page): void {
  const facts = make("p", { class: "quiet", role: "status" }, "Height: length of the step; blue: GPU busy. Click a step to see it on the timeline, or use the arrow keys.");
  fitted(element, MOST_WIDE, (width) => chartOf(data, width, facts, page));
  element.append(facts);
}

function chartOf(data: StepTimes, width: number, facts: HTMLElement, page: Page): SVGElement {
  const n = data.lengths_ns.length, longest = Math.max(1, ...data.lengths_ns), height = TOP + TALL + BOTTOM;
  const pitch = Math.min(WIDEST_BAR, (width - LEFT) / n), wide = Math.max(0.5, pitch * 0.82), every = Math.ceil(LABEL_PX / pitch);
  const chart = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart steps", role: "group", "aria-label": `${n} steps, the longest ${duration(longest)}. Arrow keys move between them.` });
  for (const part of [0, 0.5, 1]) {
    const y = TOP + TALL * (1 - part);
    chart.append(draw("path", { class: "grid", d: `M${LEFT} ${y}H${width}` }), draw("text", { x: LEFT - 8, y, class: "end dim" }, part ? duration(part * longest) : "0"));
  }
  const texts = data.lengths_ns.map((length, i) => `step ${i}: ${duration(length)}, GPU busy ${share(data.busy_ns[i] ?? 0, length)}`);
  const bars = data.lengths_ns.map((length, i) => {
    const x = LEFT + i * pitch + (pitch - wide) / 2, tall = (length / longest) * TALL, dark = ((data.busy_ns[i] ?? 0) / longest) * TALL;
    if (i % every === 0) chart.append(draw("text", { x: x + wide / 2, y: height - 9, class: "middle dim" }, String(i)));
    return draw("g", { class: "step-bar", "aria-label": texts[i] }, draw("title", {}, texts[i] ?? ""),
      draw("rect", { x, width: wide, y: TOP + TALL - tall, height: tall, class: "part idle" }),
      draw("rect", { x, width: wide, y: TOP + TALL - dark, height: dark, class: "part compute" }));
  });
  roving(bars, (at) => { facts.textContent = texts[at] ?? ""; }, (at) => { const start = data.starts_ns[at] ?? 0; page.goTo(start, start + (data.lengths_ns[at] ?? 0)); });
  chart.append(...bars);
  return chart;
}
