/** Flame graphs: GPU time by the stack that launched it, and CPU time of each thread by stack. A click zooms. */

import type { Flame, Flames } from "../contract";
import { draw, make } from "../dom";
import { duration, share } from "../words";

const ROW = 18, LEAST_LETTERS = 3, LEAST_PX = 0.6;

/** A bar: its node, depth, and place as a share of the width. */
export interface Bar { readonly node: number; readonly depth: number; readonly left: number; readonly width: number }

/** As much of a text as fits into a width, as the ruler measures it; nothing if that is less than three letters. */
export function cut(text: string, room: number, ruler: (text: string) => number): string {
  if (ruler(text) <= room) return text;
  let fits = 0, beyond = text.length;
  while (beyond - fits > 1) {
    const middle = (fits + beyond) >> 1;
    if (ruler(`${text.slice(0, middle)}…`) <= room) fits = middle;
    else beyond = middle;
  }
  return fits + 1 < LEAST_LETTERS ? "" : `${text.slice(0, fits)}…`;
}

/** The bars of a flame graph below `root` (-1 for all), and its callers above it at full width; the widest first. */
export function layout(flame: Flame, root: number): Bar[] {
  const children = new Map<number, number[]>();
  flame.parent.forEach((parent, node) => children.set(parent, [...(children.get(parent) ?? []), node]));
  const total = (node: number): number => flame.total_ns[node] ?? 0;
  for (const list of children.values()) list.sort((a, b) => total(b) - total(a));
  const bars: Bar[] = [], above: number[] = [];
  for (let node = root; node >= 0; node = flame.parent[node] ?? -1) above.unshift(node);
  above.forEach((node, depth) => bars.push({ node, depth, left: 0, width: 1 }));
  const roots = root >= 0 ? [root] : children.get(-1) ?? [];
  const whole = roots.reduce((sum, node) => sum + total(node), 0) || 1;
  const place = (nodes: readonly number[], depth: number, left: number): void => {
    for (const node of nodes) {
      const width = total(node) / whole;
      if (node !== root) bars.push({ node, depth, left, width });
      place(children.get(node) ?? [], depth + 1, left);
      left += width;
    }
  };
  place(roots, Math.max(above.length - 1, 0), 0);
  return bars;
}

export function flame(data: Flames, element: HTMLElement): void {
  const choice = make("select", { "aria-label": "Flame graph" }, ...data.flames.map((one, place) => make("option", { value: place }, `${one.name}, ${duration(whole(one))}`)));
  const search = make("input", { type: "search", placeholder: "Highlight", "aria-label": "Highlight frames" });
  const back = make("button", { type: "button" }, "Whole graph");
  const facts = make("p", { class: "quiet", role: "status" });
  const chart = draw("svg", { class: "flame", role: "group", "aria-label": "Flame graph. Arrow keys move, Enter zooms, Escape zooms out." });
  element.append(make("p", { class: "tools" }, choice, " ", search, " ", back), chart, facts,
    make("p", { class: "quiet" }, "Width is time, a caller above what it calls. Each moment of a thread belongs to its innermost frame, op or call, so nothing is counted twice; GPU time is the sum of durations, below the stack that launched it. Frames under 0.02 % are left out."));
  let root = -1, focus = -1;
  const pen = make("canvas").getContext("2d"), ruler = (text: string): number => pen?.measureText(text).width ?? Infinity;

  function show(): void {
    const one = data.flames[Number(choice.value)];
    if (!one) return;
    const width = Math.max(chart.clientWidth || element.clientWidth || 1000, 300);
    const { fontSize, fontFamily } = getComputedStyle(chart);
    if (pen) pen.font = `${fontSize} ${fontFamily}`;
    const asked = search.value.toLowerCase(), bars = layout(one, root).filter((bar) => bar.width * width >= LEAST_PX);
    const shown = new Set(bars.map((bar) => bar.node));
    if (!shown.has(focus)) focus = bars[0]?.node ?? -1;
    const deepest = Math.max(0, ...bars.map((bar) => bar.depth));
    chart.setAttribute("viewBox", `0 0 ${width} ${(deepest + 1) * ROW}`);
    const focused = chart.contains(document.activeElement);
    chart.replaceChildren(...bars.map((bar) => drawn(one, bar, width, asked)));
    if (focused) refocus();
    back.disabled = root < 0;
    facts.textContent = root < 0 ? `${one.name}: ${duration(whole(one))}` : described(one, root);
  }
  function drawn(one: Flame, bar: Bar, width: number, asked: string): SVGElement {
    const name = one.frames[one.frame[bar.node] ?? 0] ?? "", left = bar.left * width, wide = bar.width * width;
    const label = cut(short(name), wide - 6, ruler);
    const matches = asked !== "" && name.toLowerCase().includes(asked);
    const zoom = (): void => { root = bar.node; focus = bar.node; show(); };
    const group = draw("g", {
      class: `frame ${kind(name)}${matches ? " match" : asked ? " faded" : ""}`, "data-node": bar.node, tabindex: bar.node === focus ? 0 : -1, role: "button",
      "aria-label": described(one, bar.node), onclick: zoom, onfocus: () => { focus = bar.node; facts.textContent = described(one, bar.node); },
    },
      draw("title", {}, described(one, bar.node)),
      draw("rect", { x: left, y: bar.depth * ROW, width: Math.max(wide - 0.5, 0.3), height: ROW - 1 }),
      ...(label ? [draw("text", { x: left + 3, y: bar.depth * ROW + ROW / 2 }, label)] : []));
    group.addEventListener("keydown", (event) => { keys(one, bar, event, zoom); });
    return group;
  }
  function keys(one: Flame, bar: Bar, event: KeyboardEvent, zoom: () => void): void {
    const move = next(one, bar.node, event.key);
    if (event.key === "Enter" || event.key === " ") zoom();
    else if (event.key === "Escape") { root = -1; show(); }
    else if (move !== null) { if (move >= 0 && chart.querySelector(`[data-node="${move}"]`)) { focus = move; show(); } }
    else return;
    event.preventDefault();
  }
  function refocus(): void {
    chart.querySelector<SVGElement>(`[data-node="${focus}"]`)?.focus();
  }
  const all = (): void => { root = -1; show(); };
  choice.addEventListener("change", all);
  back.addEventListener("click", all);
  search.addEventListener("input", show);
  new ResizeObserver(show).observe(element);
  show();
}

const whole = (one: Flame): number => one.parent.reduce((sum, parent, node) => sum + (parent < 0 ? one.total_ns[node] ?? 0 : 0), 0);

function described(one: Flame, node: number): string {
  const time = one.total_ns[node] ?? 0;
  return `${one.frames[one.frame[node] ?? 0] ?? ""}: ${duration(time)}, ${share(time, whole(one))}`;
}

/** The node that an arrow key leads to, -1 for none; null if the key is no arrow. */
export function next(one: Flame, node: number, key: string): number | null {
  const total = (other: number): number => one.total_ns[other] ?? 0, parent = one.parent[node] ?? -1;
  const below = (of: number): number[] => one.parent.flatMap((caller, child) => (caller === of ? [child] : [])).sort((a, b) => total(b) - total(a));
  if (key === "ArrowUp") return parent;
  if (key === "ArrowDown") return below(node)[0] ?? -1;
  if (key !== "ArrowLeft" && key !== "ArrowRight") return null;
  const beside = below(parent);
  return beside[beside.indexOf(node) + (key === "ArrowRight" ? 1 : -1)] ?? -1;
}

const short = (name: string): string => name.replace(/^.*\/(?=[^/]*\(\d+\): )/, "").replace(/^void /, "");

/** What a frame is, for its colour. */
function kind(name: string): string {
  if (/\(\d+\): |^<built-in|^nn\.Module/.test(name)) return "python";
  if (/^(cuda|cu|hip)[A-Z]/.test(name)) return "api";
  if (/^(aten|autograd|torch|c10d|nccl|prims|inductor)::|Backward\d*$/.test(name)) return "op";
  return /[<(]|kernel|gemm|^Mem(cpy|set)/i.test(name) ? "kernel" : "range";
}
