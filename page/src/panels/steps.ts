/** Each step as a bar: its length, and the part of it in which the GPU is busy. A click shows it on the timeline. */

import type { StepTimes } from "../contract";
import { draw, make } from "../dom";
import type { Page } from "../page";
import { duration, share } from "../words";

const HEIGHT = 120, WIDTH = 1000, MOST_WIDE = 48;

export function steps(data: StepTimes, element: HTMLElement, page: Page): void {
  const n = data.lengths_ns.length, longest = Math.max(1, ...data.lengths_ns);
  const pitch = Math.min(MOST_WIDE, WIDTH / n), wide = Math.max(0.5, pitch * 0.82);
  const chart = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "steps", role: "img", "aria-label": `${n} steps, the longest ${duration(longest)}` });
  data.lengths_ns.forEach((length, i) => {
    const busy = data.busy_ns[i] ?? 0, start = data.starts_ns[i] ?? 0, x = i * pitch;
    const tall = (length / longest) * HEIGHT, dark = (busy / longest) * HEIGHT;
    const bar = draw("g", { class: "step-bar", onclick: () => page.goTo(start, start + length) },
      draw("title", {}, `step ${i}: ${duration(length)}, GPU busy ${share(busy, length)}`),
      draw("rect", { x, width: wide, y: HEIGHT - tall, height: tall, class: "part idle" }),
      draw("rect", { x, width: wide, y: HEIGHT - dark, height: dark, class: "part compute" }));
    chart.append(bar);
  });
  element.append(chart, make("p", { class: "quiet" }, `Height: length of the step, the longest ${duration(longest)}; dark: GPU busy. Click a step to see it on the timeline.`));
}
