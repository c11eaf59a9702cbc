/** What is drawn over the lanes: frames around rows, arrows between them, and a selected range of time. */

import type { Picture } from "./canvas";
import { GUTTER, TOP } from "./layout";
import type { Look } from "./look";
import type { Arrow } from "./relations";

export interface Marked {
  readonly chosen: number;
  readonly hovered: number;
  readonly family: readonly number[];
  readonly arrows: readonly Arrow[];
  readonly range: readonly [number, number] | null;
}

export class Overlay {
  private readonly context: CanvasRenderingContext2D;
  private ratio = 1;
  private isEmpty = true;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly picture: Picture) {
    this.context = canvas.getContext("2d")!;
  }

  resize(ratio: number): void {
    this.ratio = ratio;
    this.canvas.width = this.picture.width * ratio;
    this.canvas.height = this.picture.height * ratio;
  }

  draw(marked: Marked, look: Look): void {
    const { context, picture, ratio } = this, wasEmpty = this.isEmpty;
    this.isEmpty = marked.chosen < 0 && marked.hovered < 0 && !marked.range;
    if (wasEmpty && this.isEmpty) return; // a canvas that is touched is composited anew
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, picture.width, picture.height);
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, picture.width - GUTTER, picture.height);
    context.clip();
    if (marked.range) this.range(marked.range, look);
    context.beginPath();
    context.rect(GUTTER, TOP, picture.width - GUTTER, picture.height);
    context.clip();
    for (const i of marked.family) this.frame(i, look.css.dim, 1.5);
    for (const [from, to] of marked.arrows) this.arrow(from, to, look);
    if (marked.chosen >= 0) this.frame(marked.chosen, look.css.accent, 2);
    if (marked.hovered >= 0 && marked.hovered !== marked.chosen) this.frame(marked.hovered, look.css.ink, 1);
    context.restore();
  }

  private range([start, end]: readonly [number, number], look: Look): void {
    const { context, picture } = this, left = picture.x(start), right = picture.x(end);
    context.globalAlpha = 0.12;
    context.fillStyle = look.css.accent;
    context.fillRect(left, 0, right - left, picture.height);
    context.globalAlpha = 1;
    context.fillRect(left, 0, 1, picture.height);
    context.fillRect(right - 1, 0, 1, picture.height);
  }

  private frame(i: number, colour: string, weight: number): void {
    const { context, picture } = this, box = picture.box(i), { pinned } = picture.layout;
    if (!box || (box.row.y >= pinned && box.y < TOP + pinned - 8)) return;
    const x = Math.max(GUTTER - 4, box.x), right = Math.min(picture.width + 4, box.right);
    context.strokeStyle = colour;
    context.lineWidth = weight;
    context.strokeRect(x - 0.5, box.y - 0.5, Math.max(2, right - x), box.height + 1);
  }

  private arrow(from: number, to: number, look: Look): void {
    const { context, picture } = this, a = picture.box(from), b = picture.box(to);
    if (!a || !b) return;
    const up = a.y > b.y, x0 = a.x, x1 = b.x + 1, way = up ? 1 : -1;
    const y0 = Math.max(TOP + picture.layout.pinned - 4, up ? a.y : a.y + a.height), y1 = up ? b.y + b.height : b.y, bend = (y1 - y0) * 0.55 || 20;
    for (const [colour, weight] of [[look.css.paper, 4], [look.css.accent, 1.75]] as const) {
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = weight;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1 + 5 * way);
      context.stroke();
    }
    context.beginPath();
    context.arc(x0, y0, 3, 0, 7);
    context.fill();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 4.5, y1 + 8 * way);
    context.lineTo(x1 + 4.5, y1 + 8 * way);
    context.fill();
  }
}
