/** The dispatch budget, live: can the CPU launch as fast as the GPU computes, and what would a CUDA graph or fusion give? */

import type { BudgetInputs } from "../contract";
import { make } from "../dom";
import { duration, several, speedup } from "../words";

export interface Inputs { readonly launches: number; readonly cpu_ns: number; readonly gpu_ns: number; readonly fewer: number }
export interface Budget {
  readonly dispatch_ns: number; readonly work_ns: number; readonly step_ns: number; readonly graph_ns: number; readonly fused_ns: number;
  readonly bound: "dispatch on the CPU" | "the GPU" | "loading data" | "neither dispatch nor the GPU alone"; readonly crossover: number | null;
}

/** The numbers of `warpline budget`; those of the replay where the inputs are the trace's own. */
export function budgetOf(data: BudgetInputs, { launches, cpu_ns, gpu_ns, fewer }: Inputs): Budget {
  const dispatch_ns = launches * cpu_ns, work_ns = launches * gpu_ns;
  const own = launches === data.launches && cpu_ns === data.cpu_ns && gpu_ns === data.gpu_ns;
  const longer_ns = Math.max(dispatch_ns, work_ns), step_ns = own && data.step_ns !== null ? data.step_ns : longer_ns;
  return {
    dispatch_ns, work_ns, step_ns,
    graph_ns: own && data.graph_ns !== null ? data.graph_ns : data.graph_launch_ns + work_ns + launches * data.graph_gap_ns,
    // A step that also waits for something else than launches and kernels keeps that wait.
    fused_ns: Math.max(dispatch_ns / fewer, work_ns) + Math.max(0, step_ns - longer_ns),
    bound: boundOf(dispatch_ns, work_ns, own ? data.loading_ns : 0, step_ns),
    crossover: cpu_ns ? work_ns / cpu_ns : null,
  };
}

/** What fills a step but for a tenth; the same threads dispatch and load, one after the other. */
function boundOf(dispatch_ns: number, work_ns: number, loading_ns: number, step_ns: number): Budget["bound"] {
  const host_ns = dispatch_ns + loading_ns;
  if (1.1 * Math.max(work_ns, host_ns) < step_ns) return "neither dispatch nor the GPU alone";
  if (work_ns >= host_ns) return "the GPU";
  return loading_ns > dispatch_ns ? "loading data" : "dispatch on the CPU";
}

export function budget(data: BudgetInputs, element: HTMLElement): void {
  const answer = make("div", { role: "status", "aria-live": "polite" });
  const now: { -readonly [key in keyof Inputs]: Inputs[key] } = { launches: data.launches, cpu_ns: data.cpu_ns, gpu_ns: data.gpu_ns, fewer: 4 };
  const field = (label: string, key: keyof Inputs, scale: number, least: number): [HTMLElement, HTMLInputElement] => {
    const written = (value: number): string => String(Math.round((value / scale) * 100) / 100);
    const start = now[key], input = make("input", { type: "number", min: least, step: "any", value: written(start) });
    input.addEventListener("input", () => {
      const value = Number(input.value);
      input.setAttribute("aria-invalid", String(!(Number.isFinite(value) && value >= least)));
      if (!Number.isFinite(value) || value < least) return;
      // What is shown is rounded: the same text means the trace's own number.
      now[key] = input.value === written(start) ? start : value * scale;
      show();
    });
    return [make("label", {}, `${label} `, input), input];
  };
  const fields = [field("Launches per step", "launches", 1, 1), field("CPU time per launch, µs", "cpu_ns", 1e3, 0), field("GPU time per launch, µs", "gpu_ns", 1e3, 0), field("Fusion: times fewer launches", "fewer", 1, 1)];
  const starts = fields.map(([, input]) => input.value);
  const reset = make("button", { type: "button", onclick: () => fields.forEach(([, input], place) => { input.value = starts[place] ?? ""; input.dispatchEvent(new Event("input")); }) }, "This trace");
  function show(): void {
    const found = budgetOf(data, now), line = (name: string, value: string): Node[] => [make("dt", {}, name), make("dd", {}, value)];
    const gain = (ns: number): string => `${duration(ns)} (${speedup(found.step_ns / Math.max(ns, 1))})`;
    answer.replaceChildren(
      make("p", { class: "strong" }, `Bound by ${found.bound}: a step takes ${duration(found.step_ns)}.`),
      make("dl", {}, ...line("to dispatch", duration(found.dispatch_ns)), ...line("to run", duration(found.work_ns)),
        ...(data.loading_ns ? line("loading data", `${duration(data.loading_ns)} in which the same threads launch nothing`) : []),
        ...(found.crossover === null ? [] : line("crossover", `the GPU is the limit below ${several(found.crossover, "launch", "launches")} for the same GPU time`)),
        ...line("captured as one graph", gain(found.graph_ns)), ...line(`with ${now.fewer} times fewer launches`, gain(found.fused_ns))));
  }
  element.append(make("div", { class: "budget" }, make("div", { class: "fields" }, ...fields.map(([label]) => label), make("p", {}, reset)), answer));
  show();
}
