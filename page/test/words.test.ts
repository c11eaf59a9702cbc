import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBase64, inflate, planes, unzigzag } from "../src/unpack";
import { count, duration, share, several, size, speedup } from "../src/words";

test("numbers are written as in the other reports", () => {
  assert.deepEqual([950, 12_300, 4_560_000, 1.2e9, 999_600, 999.6].map(duration), ["950 ns", "12.3 µs", "4.56 ms", "1.20 s", "1.00 ms", "1.00 µs"]);
  assert.deepEqual([1.409, 15.62, 1252].map(speedup), ["1.41×", "15.6×", "1,252×"]);
  assert.deepEqual([share(1, 4), share(1, 0), size(1.2e9), count(1312), several(1, "step"), several(2, "step")], ["25.0 %", "–", "1.20 GB", "1,312", "1 step", "2 steps"]);
});

test("byte planes give back the numbers", () => {
  const bytes = new Uint8Array([2, 1, 2, 255, 0, 1, 255]), out = new Float64Array(4);
  assert.equal(planes(bytes, 0, 3, out, 1), 7);
  assert.deepEqual([...out], [0, 1, 258, 65535]);
});

test("zigzag codes are signed numbers", () => {
  assert.deepEqual([0, 1, 2, 3, 2 ** 40].map(unzigzag), [0, -1, 1, -2, 2 ** 39]);
});

test("a block is raw deflate as base64, as Python writes it", async () => {
  const text = "K08sKsjJzEsFAA=="; // block(b"warpline")
  assert.equal(new TextDecoder().decode(await inflate(fromBase64(text))), "warpline");
});
