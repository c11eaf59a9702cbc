import assert from "node:assert/strict";
import { test } from "node:test";
import type { Name, Timeline } from "../src/contract";
import { fromHash, toHash } from "../src/timeline/address";
import { tickOf } from "../src/timeline/canvas";
import { Events } from "../src/timeline/events";
import { Raster } from "../src/timeline/raster";
import { Search } from "../src/timeline/search";
import { totals } from "../src/timeline/totals";

const name = (text: string): Name => ({ text, short: "", kind: "kernel", cause: null, identity: null });

/** One lane of rows [start, end, name]. */
function lane(rows: readonly (readonly [number, number, number])[]): Events {
  const head = { events: rows.length, early_parts: 1, names: [name("gemm"), name("add")], tracks: [{ kind: "gpu", label: "stream 7", part: 0, lanes: [rows.length], device: 0, thread: null }] };
  const events = new Events(head as unknown as Timeline), bytes: number[] = [];
  const column = (values: number[]): void => { bytes.push(4); for (let plane = 0; plane < 4; plane++) for (const value of values) bytes.push((value >>> (8 * plane)) & 255); };
  const zigzag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);
  column(rows.map(([start], i) => zigzag(start - (rows[i - 1]?.[1] ?? 0))));
  column(rows.map(([start, end]) => end - start));
  column(rows.map(([, , id]) => id));
  const text = new TextEncoder().encode(JSON.stringify({ launches: [], inputs: [], identities: [], spots: [], inside: [] }));
  bytes.push(text.length, 0, 0, 0, ...text);
  column(rows.map(() => 0));
  column(rows.map(() => 0));
  const packed = Uint8Array.from(bytes);
  events.readRest(packed, events.readFirst(packed, 0));
  return events;
}

test("rows come back from their columns", () => {
  const events = lane([[5, 10, 0], [10, 11, 1], [300_000, 400_000, 0]]);
  assert.deepEqual([...events.start], [5, 10, 300_000]);
  assert.deepEqual([...events.end], [10, 11, 400_000]);
  assert.deepEqual([...events.sum], [0, 5, 6, 100_006]);
  assert.deepEqual([...events.counts], [2, 1]);
  assert.equal(events.link[0], -1);
});

test("rows are found by time", () => {
  const events = lane(Array.from({ length: 1000 }, (_, i) => [10 * i, 10 * i + 6, i % 2] as const)), only = events.lanes[0]!;
  for (const time of [-1, 0, 5, 6, 7, 5003, 9999, 20_000]) {
    const slow = [...events.end].findIndex((end) => end > time);
    assert.equal(events.after(only, time), slow < 0 ? 1000 : slow);
    const leap = [...events.start].findIndex((start, i) => i > 3 && start >= time);
    assert.equal(events.leap(3, 1000, time), leap < 0 ? 1000 : leap);
  }
});

test("the longest row of a stretch is found", () => {
  const lengths = Array.from({ length: 500 }, (_, i) => 1 + ((i * 7919) % 101)), events = lane(lengths.map((length, i) => [1000 * i, 1000 * i + length, 0] as const));
  for (const [i, j] of [[0, 500], [3, 70], [64, 128], [100, 101], [130, 460]] as const) {
    assert.equal(events.duration(events.longest(i, j)), Math.max(...lengths.slice(i, j)));
  }
});

test("a column is as strong as the share of it that is covered", () => {
  // 100 rows in 10 columns: columns 0 to 4 are half covered, 5 to 9 fully.
  const events = lane(Array.from({ length: 100 }, (_, i) => [10 * i, 10 * i + (i < 50 ? 1 : 10), 0] as const)), raster = new Raster(events, 10);
  raster.line.fill(0xff000000);
  raster.draw(events.lanes[0]!, 0, 10 / 1000, Uint32Array.from([0xffffffff, 0xffffffff]), null, null);
  const red = [...raster.line].map((pixel) => pixel & 255);
  assert.ok(red.slice(0, 5).every((value) => Math.abs(value - 255 * Math.sqrt(0.1)) < 2), String(red));
  assert.ok(red.slice(5).every((value) => value === 255), String(red));
});

test("a match inside a crowded column is not hidden", () => {
  const events = lane(Array.from({ length: 1000 }, (_, i) => [i * 10, i * 10 + (i === 500 ? 1 : 9), i === 500 ? 1 : 0] as const)), search = new Search(events), raster = new Raster(events, 10);
  search.seek("ADD");
  assert.equal(search.total, 1);
  raster.draw(events.lanes[0]!, 0, 10 / 10_000, Uint32Array.from([1, 2]), search.matches, null);
  assert.deepEqual([...raster.line].map((pixel) => pixel & 255).filter((value) => value === 2).length, 1);
});

test("matches are walked in time, and begin anew at the end", () => {
  const events = lane([[0, 5, 1], [10, 15, 0], [20, 25, 1], [30, 35, 0], [40, 45, 1]]), search = new Search(events);
  search.seek("add");
  assert.equal(search.total, 3);
  const walk = [search.next(1, -1, -1)];
  for (let i = 0; i < 3; i++) walk.push(search.next(1, walk[walk.length - 1]!, 0));
  assert.deepEqual(walk, [0, 2, 4, 0]);
  assert.deepEqual([search.next(-1, 4, 0), search.next(-1, 0, 0)], [2, 4]);
});

test("totals of a range count what lies inside", () => {
  const events = lane([[0, 10, 0], [10, 30, 1], [30, 50, 0]]);
  assert.deepEqual(totals(events, 5, 40, ["gpu"]), [{ name: 1, count: 1, time: 20 }, { name: 0, count: 2, time: 15 }]);
});

test("a view goes to the address and back", () => {
  const view = { at: [100, 2000] as const, event: 7, range: [300, 400] as const };
  assert.deepEqual(fromHash(`#${toHash(view)}`), view);
  assert.deepEqual(fromHash("#findings"), {});
  assert.deepEqual(fromHash("#at=x-y&event=-1"), {});
});

test("ticks are round", () => {
  assert.deepEqual([tickOf(1000, 10), tickOf(1300, 10), tickOf(4400, 10), tickOf(70, 10)], [100, 200, 500, 10]);
});
