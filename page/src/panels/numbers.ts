/** How each number of the page was made. */

import type { Numbers } from "../contract";
import { make } from "../dom";

export function numbers(data: Numbers, element: HTMLElement): void {
  element.append(make("dl", { class: "numbers" }, ...data.entries.flatMap((one) => [
    make("dt", {}, one.number),
    make("dd", {}, ...(one.value ? [make("b", {}, one.value), " "] : []), one.how),
  ])));
}
