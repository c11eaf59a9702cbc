/** The view in the page's address, so that a link leads to a moment: #at=START-END&event=N&range=A-B, in ns. */

export interface Address {
  readonly at?: readonly [number, number];
  readonly event?: number;
  readonly range?: readonly [number, number];
}

const pair = (text: string | null): readonly [number, number] | undefined => {
  const found = /^(-?\d+)-(\d+)$/.exec(text ?? "");
  return found ? [Number(found[1]), Number(found[2])] : undefined;
};

export function fromHash(hash: string): Address {
  const parts = new URLSearchParams(hash.replace(/^#/, "")), at = pair(parts.get("at")), range = pair(parts.get("range")), event = parts.get("event");
  return { ...(at ? { at } : {}), ...(range ? { range } : {}), ...(event !== null && /^\d+$/.test(event) ? { event: Number(event) } : {}) };
}

export function toHash({ at, event, range }: Address): string {
  const whole = (pair: readonly [number, number]): string => pair.map((ns) => Math.max(0, Math.round(ns))).join("-");
  return [at ? `at=${whole(at)}` : "", event !== undefined ? `event=${event}` : "", range ? `range=${whole(range)}` : ""].filter(Boolean).join("&");
}
