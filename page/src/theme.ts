/** Light and dark: as the system says, until the reader chooses. */

import { make } from "./dom";

const KEY = "warpline-theme";
type Theme = "light" | "dark";
const system = (): MediaQueryList => matchMedia("(prefers-color-scheme: dark)");
const listeners: (() => void)[] = [];

function chosen(): Theme | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null; // a file's page may have no storage
  }
}

export const isDark = (): boolean => (document.documentElement.dataset["theme"] ?? (system().matches ? "dark" : "light")) === "dark";

/** Call this when the colours change. */
export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

export function themeButton(): HTMLElement {
  const kept = chosen();
  if (kept) document.documentElement.dataset["theme"] = kept;
  const button = make("button", { type: "button", class: "theme" });
  const name = (): void => {
    const other = isDark() ? "Light" : "Dark";
    button.textContent = other;
    button.setAttribute("aria-label", `${other} colours`);
  };
  const tell = (): void => { name(); for (const listener of listeners) listener(); };
  button.addEventListener("click", () => {
    const next: Theme = isDark() ? "light" : "dark";
    document.documentElement.dataset["theme"] = next;
    try { localStorage.setItem(KEY, next); } catch { /* as above */ }
    tell();
  });
  system().addEventListener("change", tell);
  // Paper is white, and a canvas keeps its colours.
  let shown: string | undefined;
  addEventListener("beforeprint", () => { shown = document.documentElement.dataset["theme"]; document.documentElement.dataset["theme"] = "light"; tell(); });
  addEventListener("afterprint", () => { if (shown) document.documentElement.dataset["theme"] = shown; else delete document.documentElement.dataset["theme"]; tell(); });
  name();
  return button;
}
