/** What panels may ask of the rest of the page. */

export interface Page {
  /** Show this part of the timeline, in nanoseconds from its zero. */
  goTo(startNs: number, endNs: number): void;
  /** Highlight events whose names contain this text, and go to the next one. */
  search(text: string): void;
}
