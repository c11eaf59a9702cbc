import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timeline } from "../src/contract";
import { Details } from "../src/timeline/served";

const head = (rest: Partial<Timeline>): Timeline => ({ least_ns: 100, detailed: null, length_ns: 10_000_000, ...rest }) as Timeline;

test("rows are missing where those left out would be as wide as a pixel", () => {
  assert.equal(Details.areMissing(head({}), 0, 100_000, 1000), true);
  assert.equal(Details.areMissing(head({}), 0, 100_001, 1000), false);
  assert.equal(Details.areMissing(head({ least_ns: 0 }), 0, 10, 1000), false);
});

test("a part that has all its rows is not fetched again", () => {
  const one = head({ detailed: [1000, 5000] });
  assert.equal(Details.areMissing(one, 1000, 5000, 1000), false);
  assert.equal(Details.areMissing(one, 999, 5000, 1000), true);
  assert.equal(Details.areMissing(one, 2000, 5001, 1000), true);
});

test("most of a trace is never fetched", () => {
  assert.equal(Details.areMissing(head({ least_ns: 1_000_000 }), 0, 2_500_001, 1000), false);
});
