/** The elements around the canvases: tools, legend, tip, panel and the list of keys. */

import { make } from "../dom";

const KEYS: readonly (readonly [readonly string[], string])[] = [
  [["W", "S"], "zoom in, out (also Ctrl and wheel, pinch; wheel alone once the timeline has the focus)"],
  [["A", "D"], "pan (also drag, Shift and wheel)"],
  [["←", "→"], "previous, next event of the row; without a selection, pan"],
  [["↑", "↓"], "out to the caller, in to the callee; without a selection, scroll"],
  [["Enter"], "select an event in the middle of the view"],
  [["F", "0"], "fit the selection, the whole trace"],
  [["L"], "follow the link: kernel ↔ launch ↔ op, backward ↔ forward"],
  [["G"], "next, largest gap of the cause that is searched for"],
  [["R"], "select the visible range (also Shift and drag, or drag on the ruler)"],
  [["P", "T"], "fold or unfold Python; the streams of a GPU with many"],
  [["/", "N", "Shift+N"], "search, next, previous match"],
  [["Esc"], "clear"],
];

export interface Furniture {
  readonly find: HTMLInputElement;
  readonly previous: HTMLButtonElement;
  readonly next: HTMLButtonElement;
  readonly found: HTMLOutputElement;
  readonly span: HTMLOutputElement;
  readonly whole: HTMLButtonElement;
  readonly help: HTMLButtonElement;
  readonly legend: HTMLElement;
  readonly map: HTMLCanvasElement;
  readonly stage: HTMLElement;
  readonly view: HTMLCanvasElement;
  readonly over: HTMLCanvasElement;
  readonly tip: HTMLElement;
  readonly panel: HTMLElement;
  readonly keys: HTMLDialogElement;
}

export function furnish(section: HTMLElement): Furniture {
  const find = make("input", { type: "search", placeholder: "Search names   /", spellcheck: "false", autocomplete: "off", "aria-label": "Search names" });
  const previous = make("button", { type: "button", "aria-label": "Previous match", disabled: true }, "↑");
  const next = make("button", { type: "button", "aria-label": "Next match", disabled: true }, "↓");
  const found = make("output", { "aria-live": "polite" }), span = make("output");
  const whole = make("button", { type: "button", title: "Whole trace (0)" }, "Whole trace");
  const help = make("button", { type: "button", "aria-label": "Keys", title: "Keys (?)" }, "?");
  const legend = make("div", { class: "legends" });
  const map = make("canvas", { class: "map", role: "img", "aria-label": "The whole trace; drag to move the view" });
  const view = make("canvas", {
    class: "view", tabindex: 0, role: "application",
    "aria-label": "Timeline. W and S zoom, A and D pan, Enter selects, arrow keys move between events, slash searches, question mark lists the keys.",
  });
  const over = make("canvas", { class: "over", "aria-hidden": "true" }), tip = make("div", { class: "tip", role: "tooltip", hidden: true });
  const stage = make("div", { class: "stage" }, view, over, tip);
  const panel = make("aside", { class: "event", "aria-label": "Selection", "aria-live": "polite", hidden: true });
  const keys = make("dialog", { "aria-label": "Keys" }, make("h2", {}, "Keys"),
    make("dl", {}, ...KEYS.flatMap(([names, meaning]) => [make("dt", {}, ...names.flatMap((name) => [make("kbd", {}, name), " "])), make("dd", {}, meaning)])),
    make("form", { method: "dialog" }, make("button", {}, "Close")));
  const tools = make("div", { class: "tools", role: "toolbar", "aria-label": "Timeline tools" }, find, previous, next, found, make("span", { class: "room" }), span, whole, help);
  section.replaceChildren(make("div", { class: "heading" }, make("h2", {}, "Timeline"), tools), legend, map, stage, panel, keys);
  return { find, previous, next, found, span, whole, help, legend, map, stage, view, over, tip, panel, keys };
}
