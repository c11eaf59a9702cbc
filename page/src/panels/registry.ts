/**
 * The panels below the timeline, in the order of the page. A panel is one module here with a function that fills an
 * element from its part of the data; a panel without data is left out. Its data is a field of `Panels` (contract.py).
 */

import type { Panels } from "../contract";
import type { Page } from "../page";
import { budget } from "./budget";
import { flame } from "./flame";
import { memory } from "./memory";
import { numbers } from "./numbers";
import { roofline } from "./roofline";
import { steps } from "./steps";
import { tables } from "./tables";
import { whatif } from "./whatif";

export interface Panel<Name extends keyof Panels = keyof Panels> {
  /** The field of `Panels` with its data, and the id of its section. */
  readonly name: Name;
  readonly title: string;
  readonly draw: (data: NonNullable<Panels[Name]>, element: HTMLElement, page: Page) => void;
}

/** Keeps a panel's data and its function of one type. */
export const panel = <Name extends keyof Panels>(name: Name, title: string, draw: Panel<Name>["draw"]): Panel => ({ name, title, draw }) as unknown as Panel;

export const PANELS: readonly Panel[] = [
  panel("whatif", "What if", whatif),
  panel("steps", "Steps", steps),
  panel("tables", "Tables", tables),
  panel("roofline", "Roofline", roofline),
  panel("flame", "Flame graph", flame),
  panel("budget", "Dispatch budget", budget),
  panel("memory", "Memory", memory),
  panel("numbers", "How each number was made", numbers),
];
