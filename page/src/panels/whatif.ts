/** Tick fixes and see the step that was replayed with them: each alone, and combinations of the plan's. */

import type { Replayed, FixChoices } from "../contract";
import { draw, make } from "../dom";
import { duration, speedup } from "../words";

const MOST_WIDE = 700, LEFT = 46, RIGHT = 76, BAR = 20, GAP = 10;

/** What was replayed with exactly these fixes. */
export function replayed(data: FixChoices, chosen: ReadonlySet<number>): Replayed | undefined {
  return data.replayed.find((one) => one.fixes.length === chosen.size && one.fixes.every((fix) => chosen.has(fix)));
}

/** The command that replays a combination. */
export function command(data: FixChoices, chosen: ReadonlySet<number>): string {
  const fixes = [...chosen].sort((a, b) => a - b).map((fix) => `--fix ${data.fixes[fix]?.name ?? ""}`);
  return ["warpline whatif", quoted(data.file), ...fixes].join(" ");
}

const quoted = (file: string): string => (/^[\w./:@%+=-]+$/.test(file) ? file : `'${file.replaceAll("'", `'"'"'`)}'`);

export function whatif(data: FixChoices, element: HTMLElement): void {
  const chosen = new Set<number>(), boxes: HTMLInputElement[] = [];
  const answer = make("div", { class: "whatif-answer", role: "status", "aria-live": "polite" });
  const show = (): void => {
    boxes.forEach((box, fix) => { box.checked = chosen.has(fix); });
    answer.replaceChildren(...result(data, chosen, Math.min(MOST_WIDE, answer.clientWidth || MOST_WIDE)));
  };
  const choose = (fixes: readonly number[]): void => { chosen.clear(); for (const fix of fixes) chosen.add(fix); show(); };
  const list = make("fieldset", { class: "fixes" }, make("legend", {}, "Fixes"));
  data.fixes.forEach((fix, number) => {
    const box = make("input", { type: "checkbox", onchange: () => { if (!chosen.delete(number)) chosen.add(number); show(); } });
    boxes.push(box);
    const place = data.planned.indexOf(number);
    const words = [fix.effort, fix.confidence ? `${fix.confidence} confidence` : "no finding alone", place >= 0 ? `plan ${place + 1}` : ""].filter(Boolean);
    list.append(make("label", { title: fix.claim }, box, make("b", {}, fix.words),
      make("span", { class: "quiet" }, ` ${words.join(", ")}`)));
  });
  const buttons = make("p", { class: "buttons" },
    make("button", { type: "button", onclick: () => choose([]) }, "None"), " ",
    ...(data.planned.length ? [make("button", { type: "button", onclick: () => choose(data.planned) }, "The plan")] : []));
  element.append(make("div", { class: "whatif" }, make("div", {}, list, buttons), answer));
  choose(data.planned.slice(0, 1));
}

function result(data: FixChoices, chosen: ReadonlySet<number>, width: number): Node[] {
  if (!chosen.size) return [sentence(`${duration(data.step_ns)} without a profiler. Tick a fix.`), picture(data, width)];
  const found = replayed(data, chosen);
  if (!found) {
    return [
      sentence("This combination was not replayed for this page."),
      make("p", { class: "quiet" }, "Fixes overlap, so their gains do not multiply. This command replays it:"),
      make("pre", {}, command(data, chosen)),
      picture(data, width),
    ];
  }
  const { low, expected, high } = found.step_ns, { gain } = found;
  const after = found.is_wide ? `${duration(low)} to ${duration(high)}: measure it` : `${duration(expected)}, ${speedup(gain.expected)}`;
  return [
    sentence(`${duration(data.step_ns)} → ${after}`),
    make("p", { class: "quiet" }, `The 80 % range is ${duration(low)} to ${duration(high)}, of the gain ${speedup(gain.low)} to ${speedup(gain.high)}. ` +
      (gain.low < 1 ? "It may gain nothing." : "Replayed on this trace's graph, without a profiler.")),
    picture(data, width, found),
  ];
}

const sentence = (text: string): HTMLElement => make("p", { class: "strong" }, text);

/** The step now and after, with the range as a line. */
function picture(data: FixChoices, width: number, after?: Replayed): SVGElement {
  const longest = Math.max(data.step_ns, after?.step_ns.high ?? 0), scale = (width - LEFT - RIGHT) / longest;
  const chart = draw("svg", { viewBox: `0 0 ${width} ${2 * BAR + 2 * GAP}`, class: "chart", "aria-hidden": "true" });
  const bar = (row: number, name: string, ns: number, kind: string): void => {
    const y = row * (BAR + GAP) + 2;
    chart.append(draw("text", { x: LEFT - 10, y: y + BAR / 2, class: "end" }, name), draw("rect", { x: LEFT, y, width: ns * scale, height: BAR, class: kind }));
  };
  bar(0, "now", data.step_ns, "before");
  chart.append(draw("text", { x: LEFT + data.step_ns * scale + 8, y: BAR / 2 + 2 }, duration(data.step_ns)));
  if (after) {
    const { low, expected, high } = after.step_ns, y = BAR + GAP + 2 + BAR / 2;
    bar(1, "after", expected, "after");
    chart.append(draw("path", { class: "whisker", d: `M${LEFT + low * scale} ${y}H${LEFT + high * scale}M${LEFT + low * scale} ${y - 6}v12M${LEFT + high * scale} ${y - 6}v12` }));
    chart.append(draw("text", { x: LEFT + high * scale + 8, y }, after.is_wide ? "measure it" : duration(expected)));
  }
  return chart;
}
