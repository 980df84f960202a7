// What the allocator holds from the driver at a moment: a row a segment, with what lies in it.

import type { Names } from "./describe";
import { element } from "./element";
import { roleColour } from "./palette";
import { levelAt, type Picture, type Scene } from "./picture";
import * as text from "./text";
import { theme } from "./theme";

interface Segment {
  address: number;
  bytes: number;
  stream: number;
  expandable: boolean;
  private: boolean;
  /** Lifetimes in it, by address. */
  lives: number[];
  used: number;
}

const ROW = 15;
const GAP = 3;
const LABEL = 250;
/** Rows that are drawn: the others are summed up. */
const MOST = 400;

/** The segments of a moment, by address: pieces of expandable ones that touch are one. */
function segments(picture: Picture, scene: Scene, bin: number): Segment[] {
  const { pieces } = picture.packed;
  const found: Segment[] = [];
  pieces.address.forEach((address, at) => {
    if (pieces.start[at] > bin || (pieces.end[at] >= 0 && pieces.end[at] <= bin)) return;
    const before = found.at(-1);
    const [expandable, stream] = [pieces.expandable[at], pieces.stream[at]];
    const touches = before && before.address + before.bytes === address && before.expandable && expandable;
    if (before && touches && before.stream === stream) before.bytes += pieces.bytes[at];
    else {
      const own = pieces.private[at];
      found.push({ address, bytes: pieces.bytes[at], stream, expandable, private: own, lives: [], used: 0 });
    }
  });
  for (let life = 0; life < picture.lives; life++) {
    if (picture.start[life] > bin || scene.end[life] <= bin || picture.address[life] < 0) continue;
    const inside = holder(found, picture.address[life]);
    if (!inside) continue;
    inside.lives.push(life);
    inside.used += picture.bytes[life] + picture.packed.each.slack[life];
  }
  return found;
}

/** Whether what is free in it cannot be given back: something alive lies there, or a CUDA graph owns it. */
const isKept = (one: Segment) => one.private || one.lives.length > 0;

function holder(all: Segment[], address: number): Segment | null {
  let low = 0;
  let high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle].address <= address) low = middle + 1;
    else high = middle;
  }
  const found = all[low - 1];
  return found && address < found.address + found.bytes ? found : null;
}

export class Segments {
  private readonly summary = element("p", "summary");
  private readonly canvas = element("canvas", { class: "segments", attributes: { role: "img" } });
  readonly root = element("div", "", this.summary, this.canvas);

  constructor(private readonly choose: (life: number) => void) {
    this.canvas.addEventListener("click", (event) => this.press(event));
  }

  private drawn: { picture: Picture; rows: Segment[]; unit: number } | null = null;

  show(picture: Picture, scene: Scene, bin: number, names: Names): void {
    const all = segments(picture, scene, bin);
    this.summary.textContent = summary(all, scene, bin);
    const rows = [...all].sort((a, b) => b.bytes - b.used - (a.bytes - a.used)).slice(0, MOST);
    const ratio = devicePixelRatio;
    const width = Math.max(300, this.canvas.parentElement?.clientWidth ?? 0);
    const height = Math.max(1, rows.length) * (ROW + GAP);
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.scale(ratio, ratio);
    const unit = Math.max(1, ...rows.map((row) => row.bytes)) / (width - LABEL - 8);
    this.drawn = { picture, rows, unit };
    rows.forEach((row, at) => {
      drawRow(context, picture, row, at * (ROW + GAP), unit, names);
    });
    this.canvas.setAttribute("aria-label", this.summary.textContent);
  }

  private press(event: MouseEvent): void {
    const { drawn } = this;
    const row = drawn?.rows[Math.floor(event.offsetY / (ROW + GAP))];
    if (!drawn || !row || event.offsetX < LABEL) return;
    const address = row.address + (event.offsetX - LABEL) * drawn.unit;
    const { picture } = drawn;
    const found = row.lives.find((life) => {
      const block = picture.bytes[life] + picture.packed.each.slack[life];
      return (
        picture.address[life] <= address && address < picture.address[life] + Math.max(block, drawn.unit)
      );
    });
    if (found !== undefined) this.choose(found);
  }
}

function drawRow(
  context: CanvasRenderingContext2D,
  picture: Picture,
  row: Segment,
  top: number,
  unit: number,
  names: Names,
): void {
  const colours = theme();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colours.faint;
  const kind = row.private ? "private pool, " : row.expandable ? "expandable, " : "";
  const what = `${text.bytes(row.bytes)}, ${text.bytes(row.bytes - row.used)} free  ${kind}stream ${row.stream}`;
  context.fillText(what, 0, top + ROW / 2, LABEL - 8);
  // Free memory is striped where something keeps it from being released, and hollow where nothing does.
  const width = Math.max(1, row.bytes / unit);
  context.strokeStyle = colours.faint;
  context.strokeRect(LABEL + 0.5, top + 0.5, width, ROW - 1);
  if (isKept(row)) stripes(context, LABEL, top, width, colours.grid);
  for (const life of row.lives) {
    const block = picture.bytes[life] + picture.packed.each.slack[life];
    const from = (picture.address[life] - row.address) / unit;
    context.fillStyle = roleColour(names.roles[picture.role[life]]);
    context.fillRect(LABEL + from, top + 1, Math.max(0.5, block / unit - 0.25), ROW - 2);
  }
}

function stripes(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  width: number,
  colour: string,
): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, ROW);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  for (let x = left - ROW; x < left + width; x += 7) {
    context.moveTo(x, top + ROW);
    context.lineTo(x + ROW, top);
  }
  context.stroke();
  context.restore();
}

function summary(all: Segment[], scene: Scene, bin: number): string {
  const sum = (of: (one: Segment) => number) => all.reduce((total, one) => total + of(one), 0);
  const held = sum((one) => one.bytes);
  const free = (which: (one: Segment) => boolean) => sum((one) => (which(one) ? one.bytes - one.used : 0));
  const kept = free((one) => one.private);
  const pinned = free((one) => !one.private && one.lives.length > 0);
  const loose = free((one) => !isKept(one));
  const merged = scene.clouds.reduce((total, cloud) => total + levelAt(cloud, bin), 0);
  const parts = [
    `${text.count(all.length)} segments hold ${text.bytes(held)} from the driver`,
    `${text.bytes(sum((one) => one.used))} in use`,
    `${text.bytes(pinned)} free but pinned: something alive lies in the same segment`,
    `${text.bytes(loose)} free and releasable`,
  ];
  if (kept > 0) parts.push(`${text.bytes(kept)} free in private pools: kept for what captured them`);
  if (merged > 0)
    parts.push(`${text.bytes(merged)} of merged lifetimes have no place here and count as free`);
  if (all.length > MOST) parts.push(`the ${MOST} with most free bytes are drawn`);
  return `${parts.join("; ")}.`;
}
