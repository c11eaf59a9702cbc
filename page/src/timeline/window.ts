/** The visible part of time: moves, zooms and glides. */

/** Shortest and longest visible span: 200 ns, and a little more than everything. */
const LEAST_NS = 200, MOST = 1.02, MARGIN = 0.01, GLIDE_MS = 160;

export class TimeWindow {
  start = 0;
  end: number;
  private gliding = 0;

  constructor(readonly length: number, private readonly changed: () => void) {
    this.end = length;
  }

  get span(): number {
    return this.end - this.start;
  }

  /** Shows this part, as far as there is something to show. */
  move(start: number, end: number): void {
    const { length } = this, span = Math.min(length * MOST, Math.max(LEAST_NS, end - start));
    const from = end - start === span ? start : (start + end - span) / 2;
    this.start = Math.max(-MARGIN * length, Math.min(from, (1 + MARGIN) * length - span));
    this.end = this.start + span;
    this.changed();
  }

  pan(by: number): void {
    this.move(this.start + by, this.end + by);
  }

  zoom(factor: number, around = (this.start + this.end) / 2): void {
    this.move(around - (around - this.start) * factor, around + (this.end - around) * factor);
  }

  /** Ends a glide: the reader has taken over. */
  stop(): void {
    this.gliding++;
  }

  /** Moves there in a short time, or at once for readers who want no motion. */
  glide(start: number, end: number): void {
    const mine = ++this.gliding, from = this.start, until = this.end, began = performance.now();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) { this.move(start, end); return; }
    const tick = (): void => {
      if (mine !== this.gliding) return;
      const share = Math.min(1, (performance.now() - began) / GLIDE_MS), eased = 1 - (1 - share) ** 3;
      this.move(from + (start - from) * eased, until + (end - until) * eased);
      if (share < 1) requestAnimationFrame(tick);
    };
    tick();
  }
}
