/** The page's program: colours, the timeline, then Python frames and panels. The text above them is there without it. */

import type { Panels, Timeline as Head } from "./contract";
import { found, make } from "./dom";
import { PANELS } from "./panels/registry";
import { themeButton } from "./theme";
import { listen } from "./timeline/input";
import { Details } from "./timeline/served";
import { Timeline } from "./timeline/timeline";
import { block, json, withHead } from "./unpack";

/** When each stage was reached, in milliseconds since the page was opened; read by tests and benchmarks. */
const marks: Record<string, number> = { begin: performance.now() };
const reached = (stage: string): void => { marks[stage] = performance.now(); };
const nextFrame = (): Promise<void> => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

function contents(): void {
  const links = [...document.querySelectorAll<HTMLElement>("main section[id]:not([hidden])")].flatMap((section) => {
    const title = section.querySelector("h2")?.textContent?.split(/[,:]/, 1)[0] ?? section.getAttribute("aria-label");
    return title && section.childElementCount ? [make("a", { href: `#${section.id}` }, title)] : [];
  });
  found("contents").replaceChildren(...links);
}

async function openTimeline(): Promise<Timeline> {
  const packed = await block("data-timeline");
  reached("inflated");
  const { head, bytes, at } = withHead<Head>(packed);
  let timeline: Timeline | null = null;
  const details = new Details(() => timeline);
  timeline = new Timeline(head, bytes, at, found("timeline"), () => details.moved());
  listen(timeline);
  reached("drawn");
  contents();
  return timeline;
}

/** A button on each finding and kernel that the timeline shows, in their order. */
function offer(cards: string, show: (number: number) => (() => void) | null): void {
  for (const [number, card] of document.querySelectorAll<HTMLElement>(cards).entries()) {
    const onclick = show(number), of = card.querySelector("h3, summary")?.textContent ?? "";
    if (onclick) card.append(make("button", { type: "button", class: "jump", "aria-label": `Show on the timeline: ${of}`, onclick }, "Show on the timeline"));
  }
}

/** What the first picture does not need: Python frames, which are most of a trace, what explains the rows, and the panels. */
async function openRest(timeline: Timeline): Promise<void> {
  timeline.addRest(await block("data-rest"));
  offer(".finding", (number) => () => timeline.showFinding(number));
  offer("#inside details", (number) => timeline.events.particulars.inside[number]?.start_ns == null ? null : () => timeline.showInside(number));
  await nextFrame();
  const data = await json<Panels>("data-panels");
  for (const panel of PANELS) {
    const mine = data[panel.name];
    if (!mine) continue;
    const body = make("div", { class: "body" });
    found("panels").append(make("section", { id: panel.name, class: "section" }, make("h2", {}, panel.title), body));
    panel.draw(mine, body, timeline);
  }
  contents();
  reached("complete");
}

document.querySelector("header")?.append(themeButton());
const parsed = new Promise<void>((done) => document.addEventListener("DOMContentLoaded", () => done()));
void openTimeline().then(async (timeline) => {
  Object.assign(window, { warpline: { marks, timeline } });
  await nextFrame();
  reached("painted");
  await parsed;
  await openRest(timeline);
});
