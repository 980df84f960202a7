// The stack of lifetimes, painted: one upon the other in every column, in an order that never changes.
//
// A column is painted from the bottom up, and columns do not depend on each other, so panning shifts what is there and paints
// only what comes into view. Columns are painted one after the other into memory, since most of what lies in them is higher than
// wide there, and turned upright as they go into the image.

import type { Axis, Columns } from "./axis";
import { type Colouring, pixel } from "./palette";
import { lastAtMost, levelAt, type Picture, type Scene } from "./picture";

/** A lifetime, or a cloud: of `order`, lifetimes count from 0, and clouds from the number of lifetimes on. */
export type Item = number;

/** What is lit where something is; the others are dimmed. */
export interface Lit {
  lives: Uint8Array;
  clouds: Set<number>;
}

/** What is painted upon: columns of so many pixels, from the bottom up. */
interface Paper {
  target: Uint32Array;
  height: number;
}

/** How light a colour may be. */
const LIGHTS = [0.9, 0.95, 1, 1.05];

/** From how many pixels on something has an edge of its own. */
const EDGED = 4;

export class Stack {
  private readonly order: Int32Array;
  private readonly colour: Uint32Array;
  private readonly edge: Uint32Array;

  constructor(
    readonly picture: Picture,
    readonly scene: Scene,
    colours: Colouring,
    lit: Lit | null,
    background: string,
  ) {
    const count = picture.lives + scene.clouds.length;
    const group = (item: Item) =>
      item < picture.lives ? colours.ofLife[item] : colours.ofCloud[item - picture.lives];
    this.order = inOrder(count, picture.lives, group, colours.names.length);
    this.colour = new Uint32Array(count);
    this.edge = new Uint32Array(count);
    const dimmed = pixel(mixed("#8a8f98", background, 0.78));
    const dimmedEdge = pixel(mixed("#8a8f98", background, 0.66));
    // Neighbours of one colour differ a little in light, by who made them.
    const tones = colours.colours.map((base) =>
      LIGHTS.map((light) => [pixel(base, light), pixel(base, light * 0.72)] as const),
    );
    for (let item = 0; item < count; item++) {
      const isLit =
        !lit || (item < picture.lives ? lit.lives[item] === 1 : lit.clouds.has(item - picture.lives));
      const [colour, edge] = tones[group(item)][this.siteOf(item) % LIGHTS.length];
      this.colour[item] = isLit ? colour : dimmed;
      this.edge[item] = isLit ? edge : dimmedEdge;
    }
  }

  /** Paints columns into rows of `height` pixels each; `unit` is how many bytes a pixel is high. */
  paint(target: Uint32Array, columns: Columns, height: number, unit: number): void {
    this.pile(columns, unit, null, { target, height });
  }

  /** The item at a height of a column, in bytes. */
  at(bin: number, height: number): Item | null {
    const { picture, scene } = this;
    let top = 0;
    for (const item of this.order) {
      if (item < picture.lives) {
        if (picture.start[item] > bin || scene.end[item] <= bin) continue;
        top += picture.bytes[item];
      } else top += levelAt(scene.clouds[item - picture.lives], bin);
      if (top > height) return item;
    }
    return null;
  }

  /** The lower and the upper edge of an item in each of some columns, in units; equal where it is not. */
  edges(item: Item, columns: Columns, unit: number): [Float64Array, Float64Array] {
    const low = this.pile(columns, unit, item, null);
    const high = low.slice();
    this.put(item, columns, unit, high, null);
    return [low, high];
  }

  /** Piles up what lies in the columns, until an item where one is given; how high that is, in units. */
  private pile(columns: Columns, unit: number, until: Item | null, paper: Paper | null): Float64Array {
    const tops = new Float64Array(columns.bin.length);
    for (const item of this.order) {
      if (item === until) break;
      this.put(item, columns, unit, tops, paper);
    }
    return tops;
  }

  /** Puts one item upon what is there. */
  private put(item: Item, columns: Columns, unit: number, tops: Float64Array, paper: Paper | null): void {
    const { picture, scene } = this;
    const { low, high, next, bin } = columns;
    if (item < picture.lives) {
      const start = picture.start[item];
      const end = scene.end[item];
      if (start > high || end <= low) return;
      const from = next[start > low ? start - low : 0];
      const until = next[(end <= high ? end : high + 1) - low];
      this.raise(item, from, until, picture.bytes[item] / unit, tops, paper);
      return;
    }
    const cloud = scene.clouds[item - picture.lives];
    let step = lastAtMost(cloud.bins, low);
    for (let column = 0; column < bin.length; column++) {
      while (step + 1 < cloud.bins.length && cloud.bins[step + 1] <= bin[column]) step++;
      if (step >= 0 && cloud.level[step] > 0) {
        this.raise(item, column, column + 1, cloud.level[step] / unit, tops, paper);
      }
    }
  }

  /** Raises columns by a size, and paints it where there is paper. */
  private raise(
    item: Item,
    from: number,
    until: number,
    size: number,
    tops: Float64Array,
    paper: Paper | null,
  ): void {
    if (!paper) {
      for (let column = from; column < until; column++) tops[column] += size;
      return;
    }
    const { target, height } = paper;
    const colour = this.colour[item];
    const edge = this.edge[item];
    for (let column = from; column < until; column++) {
      const bottom = tops[column];
      const top = bottom + size;
      tops[column] = top;
      const low = (bottom + 0.5) | 0;
      const high = Math.min(height, (top + 0.5) | 0);
      if (high <= low) continue;
      const row = column * height;
      for (let at = row + low; at < row + high; at++) target[at] = colour;
      if (high - low >= EDGED) target[row + high - 1] = edge;
    }
  }

  private siteOf(item: Item): number {
    const { picture } = this;
    const node = item < picture.lives ? picture.node[item] : this.scene.clouds[item - picture.lives].node;
    return picture.called[picture.site[node]];
  }
}

/** Items by their group, and within a group as they are: clouds first, then lifetimes by birth. */
function inOrder(count: number, lives: number, group: (item: Item) => number, groups: number): Int32Array {
  const starts = new Int32Array(groups + 2);
  for (let item = 0; item < count; item++) starts[group(item) + 1]++;
  for (let at = 0; at <= groups; at++) starts[at + 1] += starts[at];
  const order = new Int32Array(count);
  const place = (item: Item) => {
    const at = group(item);
    order[starts[at]++] = item;
  };
  for (let item = lives; item < count; item++) place(item);
  for (let item = 0; item < lives; item++) place(item);
  return order;
}

/** A colour with a share of another. */
function mixed(colour: string, other: string, share: number): string {
  const part = (text: string, at: number) => Number.parseInt(text.slice(1 + 2 * at, 3 + 2 * at), 16);
  const both = [0, 1, 2].map((at) => Math.round(part(colour, at) * (1 - share) + part(other, at) * share));
  return `#${both.map((one) => one.toString(16).padStart(2, "0")).join("")}`;
}

/** The edges of an item, for as long as the scale stays. */
interface Traced {
  item: Item;
  scale: number;
  first: number;
  edges: [Float64Array, Float64Array];
}

/** Columns of a stack as an image that can be shifted. */
export class Film {
  private readonly canvas = document.createElement("canvas");
  private columns: Columns | null = null;
  private scale = 0;
  private traced: Traced | null = null;

  /** `width` columns of `height` pixels, each so many bytes. */
  constructor(
    readonly stack: Stack,
    readonly axis: Axis,
    readonly width: number,
    readonly height: number,
    readonly unit: number,
  ) {
    this.canvas.width = width;
    this.canvas.height = height;
  }

  /** Shows the columns from a number on, and says which bins they show. */
  show(first: number, scale: number): Columns {
    const shift = this.columns && this.scale === scale ? first - this.columns.first : this.width;
    if (this.columns && shift === 0) return this.columns;
    const columns = this.axis.columns(first, this.width, scale, this.stack.scene.total);
    const context = this.canvas.getContext("2d");
    if (context) {
      if (Math.abs(shift) >= this.width) {
        this.paint(context, 0, this.width, first, scale);
      } else {
        context.globalCompositeOperation = "copy";
        context.drawImage(this.canvas, -shift, 0);
        context.globalCompositeOperation = "source-over";
        if (shift > 0) this.paint(context, this.width - shift, shift, first, scale);
        else this.paint(context, 0, -shift, first, scale);
      }
    }
    this.columns = columns;
    this.scale = scale;
    return columns;
  }

  /** The lower and the upper edge of an item in the columns that are shown, in pixels. */
  edges(item: Item): [Float64Array, Float64Array] {
    const { columns, scale, traced } = this;
    if (!columns) return [new Float64Array(0), new Float64Array(0)];
    const same = traced?.item === item && traced.scale === scale ? traced : null;
    const shift = same ? columns.first - same.first : this.width;
    if (same && shift === 0) return same.edges;
    const edges: Traced["edges"] = [new Float64Array(this.width), new Float64Array(this.width)];
    const kept = same && Math.abs(shift) < this.width ? this.width - Math.abs(shift) : 0;
    if (same && kept > 0) {
      const part = (values: Float64Array) => values.subarray(Math.max(0, shift), Math.max(0, shift) + kept);
      same.edges.forEach((values, at) => {
        edges[at].set(part(values), Math.max(0, -shift));
      });
    }
    const from = shift > 0 ? kept : 0;
    const fresh = this.axis.columns(columns.first + from, this.width - kept, scale, this.stack.scene.total);
    this.stack.edges(item, fresh, this.unit).forEach((values, at) => {
      edges[at].set(values, from);
    });
    this.traced = { item, scale, first: columns.first, edges };
    return edges;
  }

  /** Puts the image where it belongs. */
  draw(context: CanvasRenderingContext2D, left: number, top: number): void {
    context.drawImage(this.canvas, left, top);
  }

  private paint(
    context: CanvasRenderingContext2D,
    from: number,
    count: number,
    first: number,
    scale: number,
  ): void {
    const { height } = this;
    const columns = this.axis.columns(first + from, count, scale, this.stack.scene.total);
    const painted = new Uint32Array(count * height);
    this.stack.paint(painted, columns, height, this.unit);
    const image = context.createImageData(count, height);
    upright(painted, new Uint32Array(image.data.buffer), count, height);
    context.putImageData(image, from, 0);
  }
}

/** Columns from the bottom up, one after the other, as rows from the top down. */
function upright(columns: Uint32Array, rows: Uint32Array, width: number, height: number): void {
  for (let y = 0; y < height; y++) {
    const row = (height - 1 - y) * width;
    for (let x = 0, at = y; x < width; x++, at += height) rows[row + x] = columns[at];
  }
}
