/** The page's program: colours, contents, the timeline, then the panels. The text above them is there without it. */

import type { Panels } from "./contract";
import { found, make } from "./dom";
import type { Page } from "./page";
import { PANELS } from "./panels/registry";
import { themeButton } from "./theme";
import { json } from "./unpack";

/** When each stage was reached, in milliseconds since the page was opened; read by tests and benchmarks. */
const marks: Record<string, number> = { begin: performance.now() };

function contents(): void {
  const links = [...document.querySelectorAll<HTMLElement>("main section[id], #details")].flatMap((section) => {
    const title = section.querySelector("h2")?.firstChild?.textContent ?? section.getAttribute("aria-label");
    return title && section.childElementCount ? [make("a", { href: `#${section.id}` }, title)] : [];
  });
  found("contents").replaceChildren(...links);
}

async function panels(page: Page): Promise<void> {
  const data = await json<Panels>("data-panels");
  for (const panel of PANELS) {
    const mine = data[panel.name];
    if (!mine) continue;
    const body = make("div", { class: "body" });
    found("panels").append(make("section", { id: panel.name, class: "section" }, make("h2", {}, panel.title), body));
    panel.draw(mine, body, page);
  }
  contents();
}

document.querySelector("header")?.append(themeButton());
const page: Page = { goTo: () => undefined, search: () => undefined };

document.addEventListener("DOMContentLoaded", () => {
  void panels(page).then(() => { marks["complete"] = performance.now(); });
});

Object.assign(window, { warpline: { marks, page } });
