/** Elements from code. Texts become text nodes, so that no name in a file is ever markup. */

export type Child = Node | string;

interface Attributes {
  readonly [name: string]: string | number | boolean | ((event: Event) => void) | undefined;
}

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
}

/** An HTML element; attributes that are functions listen to events: `onclick`. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. Colours come from classes: the page's policy forbids style attributes. */
export function draw<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** A chart as wide as its element, at most `most` pixels, so that its text has the size of the page's; drawn again when that changes. */
export function fitted(element: HTMLElement, most: number, chart: (width: number) => Element): void {
  const place = make("div", {});
  element.append(place);
  let drawn = 0;
  const show = (): void => {
    const width = Math.min(most, place.clientWidth || most);
    if (width === drawn) return;
    drawn = width;
    place.replaceChildren(chart(width));
  };
  new ResizeObserver(show).observe(place);
  show();
}

/** One of the marks of a chart is in the order of the Tab key; arrows move to the others, and Enter does what a click does. */
export function roving(marks: readonly SVGElement[], selected: (at: number) => void, act: (at: number) => void): void {
  const select = (at: number): void => {
    marks.forEach((mark, place) => { mark.setAttribute("tabindex", place === at ? "0" : "-1"); mark.classList.toggle("selected", place === at); });
    selected(at);
  };
  marks.forEach((mark, at) => {
    mark.setAttribute("tabindex", at === 0 ? "0" : "-1");
    mark.setAttribute("role", "button");
    mark.addEventListener("focus", () => select(at));
    mark.addEventListener("click", () => { select(at); act(at); });
    mark.addEventListener("keydown", (event) => {
      const { key } = event, step = key === "ArrowRight" || key === "ArrowDown" ? 1 : key === "ArrowLeft" || key === "ArrowUp" ? -1 : 0;
      if (step) marks[(at + step + marks.length) % marks.length]?.focus();
      else if (key === "Enter" || key === " ") { select(at); act(at); }
      else return;
      event.preventDefault();
    });
  });
}

/** An element that the document has. */
export function found<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element as T;
}
