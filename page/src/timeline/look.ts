/** The colours of the page as the canvases need them, read from its style sheet. */

import { isDark } from "../theme";
import { fromHex, toPixel, type Colour } from "./colours";

export const FONT = 'Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", sans-serif';

export interface Look {
  readonly dark: boolean;
  readonly paper: Colour;
  readonly css: Readonly<Record<"paper" | "ink" | "dim" | "rule" | "grid" | "band" | "accent", string>>;
  readonly pixels: Readonly<Record<"paper" | "grid" | "rule", number>>;
}

export function currentLook(): Look {
  const style = getComputedStyle(document.documentElement), value = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const css = { paper: value("paper"), ink: value("ink"), dim: value("dim"), rule: value("rule"), grid: value("grid"), band: value("band"), accent: value("accent") };
  const pixel = (hex: string): number => toPixel(fromHex(hex));
  return { dark: isDark(), paper: fromHex(css.paper), css, pixels: { paper: pixel(css.paper), grid: pixel(css.grid), rule: pixel(css.rule) } };
}
