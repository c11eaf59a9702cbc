/** The whole trace in one strip: how busy a device is in each column, and why it is idle. */

import type { EventKind } from "../contract";
import { mix, ofCause, ofKind, toPixel } from "./colours";
import type { Events, Lane } from "./events";
import { GUTTER } from "./layout";
import { FONT, type Look } from "./look";
import type { TimeWindow } from "./window";

const PAD = 4;
/** The order in which operations at the same time count, as in the bar of the time: compute, communication, copies. */
const BUSY: readonly EventKind[] = ["matmul", "comm", "copy", "memset"];

export class Minimap {
  private readonly context: CanvasRenderingContext2D;
  private image: ImageData | null = null;
  private ratio = 1;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly events: Events, private readonly time: TimeWindow) {
    this.context = canvas.getContext("2d")!;
    const steer = (event: PointerEvent): void => {
      const at = ((event.offsetX - GUTTER) / (canvas.clientWidth - GUTTER)) * time.length, half = time.span / 2;
      time.stop();
      time.move(at - half, at + half);
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); steer(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) steer(event); });
  }

  resize(ratio: number): void {
    this.ratio = ratio;
    this.canvas.width = this.canvas.clientWidth * ratio;
    this.canvas.height = this.canvas.clientHeight * ratio;
    this.image = null;
  }

  /** Colours have changed, or rows have come. */
  forget(): void {
    this.image = null;
  }

  draw(look: Look): void {
    const { context, canvas, ratio, time } = this;
    if (canvas.width <= GUTTER * ratio) return;
    this.image ??= this.sketch(look);
    context.putImageData(this.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const room = canvas.clientWidth - GUTTER, tall = canvas.clientHeight;
    const left = GUTTER + Math.max(0, time.start / time.length) * room, right = GUTTER + Math.min(1, time.end / time.length) * room;
    context.fillStyle = look.css.dim;
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    context.fillText("whole trace", 10, tall / 2);
    context.fillStyle = `${look.css.paper}b8`;
    context.fillRect(GUTTER, 0, left - GUTTER, tall);
    context.fillRect(right, 0, GUTTER + room - right, tall);
    context.strokeStyle = look.css.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 1.25, Math.max(2, right - left - 1.5), tall - 2.5);
  }

  private sketch(look: Look): ImageData {
    const { events, canvas, ratio } = this, { head } = events, { width, height } = canvas;
    const gutter = Math.round(GUTTER * ratio), n = Math.max(1, width - gutter);
    const device = this.busiestDevice(), busy = BUSY.map(() => new Float32Array(n)), idle = head.causes.map(() => new Float32Array(n));
    for (const lane of events.lanes) {
      if (lane.group.track.device !== device) continue;
      if (lane.group.track.kind === "gpu") this.spread(lane, n, (i) => busy[Math.max(0, BUSY.indexOf(head.names[events.name[i]!]!.kind))]!);
      if (lane.group.track.kind === "idle") this.spread(lane, n, (i) => idle[Math.max(0, head.causes.indexOf(head.names[events.name[i]!]!.cause ?? ""))]!);
    }
    const image = new ImageData(width, height), out = new Uint32Array(image.data.buffer), pad = Math.round(PAD * ratio), tall = height - 2 * pad;
    const busyPixels = BUSY.map((kind) => toPixel(ofKind(kind, look.dark))), idlePixels = head.causes.map((cause) => toPixel(mix(ofCause(cause), look.paper, 0.8)));
    out.fill(look.pixels.paper);
    for (let x = 0; x < n; x++) {
      let y = height - pad, room = 1;
      const bar = (share: number, colour: number): void => {
        const to = Math.max(pad, y - share * tall);
        for (let at = Math.round(y) - 1; at >= Math.round(to); at--) out[at * width + gutter + x] = colour;
        y = to;
      };
      busy.forEach((shares, k) => { const share = Math.min(room, shares[x]!); bar(share, busyPixels[k]!); room -= share; });
      idle.forEach((shares, k) => bar(shares[x]!, idlePixels[k]!));
    }
    return image;
  }

  private busiestDevice(): number | null {
    const time = new Map<number, number>();
    for (const { group, first, beyond } of this.events.lanes) {
      const { device, kind } = group.track;
      if (kind === "gpu" && device !== null) time.set(device, (time.get(device) ?? 0) + this.events.sum[beyond]! - this.events.sum[first]!);
    }
    return [...time].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
  }

  private spread(lane: Lane, n: number, target: (i: number) => Float32Array): void {
    const { start, end } = this.events, scale = n / this.time.length;
    for (let i = lane.first; i < lane.beyond; i++) {
      const a = start[i]! * scale, b = end[i]! * scale, shares = target(i);
      for (let x = Math.floor(a); x < b && x < n; x++) shares[x]! += Math.min(b, x + 1) - Math.max(a, x);
    }
  }
}
