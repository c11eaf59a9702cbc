/** Pages of a local server hold the long rows of a large trace; the short ones are fetched for the part in view. */

import type { Timeline as Head } from "../contract";
import { inflate, withHead } from "../unpack";
import type { Timeline } from "./timeline";

/** How long the view rests before rows are fetched; views that are fetched beside it on both sides; the largest share of the trace in view. */
const REST_MS = 200, BESIDE = 1, MOST = 0.25;

export class Details {
  private waiting = 0;
  private asked = 0;

  constructor(private readonly timeline: () => Timeline | null) {}

  /** The view has moved. */
  moved(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => void this.fetch(), REST_MS) as unknown as number;
  }

  /** Whether rows that were left out would be as wide as a pixel. */
  static areMissing(head: Head, start: number, end: number, pixels: number): boolean {
    const span = end - start;
    if (!head.least_ns || span / pixels > head.least_ns || span > MOST * head.length_ns) return false;
    return !head.detailed || start < head.detailed[0] || end > head.detailed[1];
  }

  private async fetch(): Promise<void> {
    const timeline = this.timeline();
    if (!timeline) return;
    const { time, events } = timeline, start = Math.max(0, time.start), end = Math.min(time.length, time.end), mine = ++this.asked;
    if (!Details.areMissing(events.head, start, end, timeline.picture.width)) return;
    const beside = BESIDE * (end - start), from = Math.floor(Math.max(0, start - beside)), until = Math.ceil(Math.min(time.length, end + beside));
    const answer = await fetch(`rows?start=${from}&end=${until}`);
    if (!answer.ok || mine !== this.asked) return;
    const { head, bytes, at } = withHead<Head>(await inflate(new Uint8Array(await answer.arrayBuffer())));
    timeline.replace(head, bytes, at);
  }
}
