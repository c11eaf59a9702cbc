import assert from "node:assert/strict";
import { test } from "node:test";
import type { BudgetInputs, FixChoices, Flame, Roofline, TableColumn } from "../src/contract";
import { budgetOf } from "../src/panels/budget";
import { cut, layout, next } from "../src/panels/flame";
import { at } from "../src/panels/memory";
import { axes, rate } from "../src/panels/roofline";
import { filtered, grouped, sorted, type Row } from "../src/panels/tables";
import { command, replayed } from "../src/panels/whatif";

const FIXES: FixChoices = {
  step_ns: 8e6, file: "my trace.json", planned: [0, 1],
  fixes: ["fused_optimizer", "cuda_graph", "tf32"].map((name) => ({ name, words: name, effort: "setting", confidence: "high", claim: "" })),
  replayed: [{ fixes: [0], step_ns: { low: 4e6, expected: 5e6, high: 6e6 }, gain: { low: 1.2, expected: 1.6, high: 2.2 }, is_wide: false }, { fixes: [0, 1], step_ns: { low: 2e6, expected: 3e6, high: 4e6 }, gain: { low: 1.8, expected: 2.7, high: 4.4 }, is_wide: false }],
};

test("a combination is exactly the ticked fixes", () => {
  assert.equal(replayed(FIXES, new Set([1, 0]))?.step_ns.expected, 3e6);
  assert.equal(replayed(FIXES, new Set([0]))?.step_ns.expected, 5e6);
  assert.equal(replayed(FIXES, new Set([1])), undefined);
  assert.equal(replayed(FIXES, new Set([0, 2])), undefined);
});

test("the command for another combination can be pasted into a shell", () => {
  assert.equal(command(FIXES, new Set([2, 0])), "warpline whatif 'my trace.json' --fix fused_optimizer --fix tf32");
  assert.equal(command({ ...FIXES, file: "it's" }, new Set([2])), `warpline whatif 'it'"'"'s' --fix tf32`);
});

const ROWS: Row[] = [["b gemm", 2, "fp32"], ["a Softmax", null, "fp16"], ["c gemm", 10, "fp32"]];

test("rows are sorted by number or name, those without a value last", () => {
  assert.deepEqual(sorted(ROWS, { column: 1, falling: true }).map((row) => row[1]), [10, 2, null]);
  assert.deepEqual(sorted(ROWS, { column: 1, falling: false }).map((row) => row[1]), [2, 10, null]);
  assert.deepEqual(sorted(ROWS, { column: 0, falling: false }).map((row) => row[0]), ["a Softmax", "b gemm", "c gemm"]);
});

test("a filter keeps rows with every word, in any case and column", () => {
  assert.deepEqual(filtered(ROWS, "GEMM fp32").map((row) => row[0]), ["b gemm", "c gemm"]);
  assert.deepEqual(filtered(ROWS, " soft ").length, 1);
  assert.deepEqual(filtered(ROWS, "").length, 3);
  assert.deepEqual(filtered(ROWS, "none"), []);
});

test("groups sum what can be summed", () => {
  const text = { unit: "text", group: false, sums: false } as const;
  const columns: TableColumn[] = [{ ...text, title: "kernel" }, { title: "total", unit: "ns", group: false, sums: true }, { ...text, title: "type", group: true }];
  const found = grouped(ROWS, columns, 2);
  assert.deepEqual(found.columns.map((column) => column.title), ["type", "rows", "total"]);
  assert.deepEqual(found.rows, [["fp32", 2, 12], ["fp16", 1, 0]]);
});

// main (100) calls step (90), which calls mm (60) and add (20); another root (20).
const FLAME: Flame = { name: "GPU time", frames: ["main", "step", "mm", "add", "other"], frame: [0, 4, 1, 3, 2], parent: [-1, -1, 0, 2, 2], total_ns: [100, 20, 90, 20, 60] };

test("bars of a flame graph are as wide as their time, the widest first", () => {
  assert.deepEqual(layout(FLAME, -1).map((bar) => [bar.node, bar.depth, Math.round(bar.left * 120), Math.round(bar.width * 120)]),
    [[0, 0, 0, 100], [2, 1, 0, 90], [4, 2, 0, 60], [3, 2, 60, 20], [1, 0, 100, 20]]);
});

test("a zoomed node is as wide as the graph, with its callers above", () => {
  assert.deepEqual(layout(FLAME, 2).map((bar) => [bar.node, bar.depth, bar.left, Math.round(bar.width * 90)]), [[0, 0, 0, 90], [2, 1, 0, 90], [4, 2, 0, 60], [3, 2, 60 / 90, 20]]);
});

test("arrow keys lead to the caller, the widest callee and the neighbours", () => {
  assert.deepEqual(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "x"].map((key) => next(FLAME, 2, key)), [0, 4, -1, -1, null]);
  assert.deepEqual([next(FLAME, 4, "ArrowRight"), next(FLAME, 3, "ArrowLeft"), next(FLAME, 0, "ArrowRight"), next(FLAME, 0, "ArrowUp")], [3, 4, 1, -1]);
});

test("the name of a frame is cut to its bar, by the width of its letters", () => {
  const ruler = (text: string): number => [...text].reduce((sum, letter) => sum + (letter === "m" ? 10 : 5), 0);
  assert.deepEqual([cut("mmii", 30, ruler), cut("mmii", 29, ruler), cut("iiiiii", 29, ruler), cut("mmmm", 19, ruler)], ["mmii", "mm…", "iiii…", ""]);
});

const BUDGET: BudgetInputs = { launches: 300, cpu_ns: 20_000, gpu_ns: 10_000, graph_launch_ns: 5_000, graph_gap_ns: 100, step_ns: 6_500_000, graph_ns: 3_200_000, loading_ns: 0 };

test("the budget is that of the replay for the trace's own numbers, and the formula's for others", () => {
  const own = budgetOf(BUDGET, { launches: 300, cpu_ns: 20_000, gpu_ns: 10_000, fewer: 4 });
  assert.deepEqual([own.step_ns, own.graph_ns, own.fused_ns, own.bound, own.crossover], [6_500_000, 3_200_000, 3_500_000, "dispatch on the CPU", 150]);
  const other = budgetOf(BUDGET, { launches: 100, cpu_ns: 5_000, gpu_ns: 10_000, fewer: 2 });
  assert.deepEqual([other.step_ns, other.graph_ns, other.bound, other.crossover], [1_000_000, 5_000 + 1_000_000 + 10_000, "the GPU", 200]);
  const loading = { ...BUDGET, loading_ns: 6_100_000 };
  assert.deepEqual([budgetOf(loading, { ...BUDGET, fewer: 4 }).bound, budgetOf(loading, { ...BUDGET, launches: 301, fewer: 4 }).bound], ["loading data", "dispatch on the CPU"]);
  assert.equal(budgetOf(BUDGET, { launches: 1, cpu_ns: 0, gpu_ns: 1, fewer: 1 }).crossover, null);
});

test("the axes of the roofline hold all dots and ceilings", () => {
  const dot = { name: "mm", shapes: "", calls: 1, time_ns: 1, intensity: 0.25, flops_per_second: 3e9, roof_pct: null, bound: "memory" };
  const data: Roofline = { device: "H200", total_ns: 1, drawn_ns: 1, memory: { name: "memory", value: 4e12, source: "measured" }, compute: [{ name: "bf16", value: 8e14, source: "measured" }], dots: [dot] };
  assert.deepEqual(axes(data), { x: [-1, 3], y: [9, 15] });
  assert.deepEqual([8e14, 3e9, 4.2e6].map(rate), ["800 TFLOP/s", "3.00 GFLOP/s", "4.20 MFLOP/s"]);
});

test("a moment has the value of the last point before it", () => {
  assert.deepEqual([-5, 10, 15, 20, 99].map((moment) => at([10, 20, 30], moment)), [0, 0, 0, 1, 2]);
});
