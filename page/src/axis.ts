// The horizontal axis: where each bin lies, and which bin each column of pixels shows.

import type { Picture } from "./picture";
import { lastAtMost } from "./picture";

export type AxisKind = "events" | "time" | "iterations";

/** Columns of pixels with the bin that each shows. */
export interface Columns {
  /** The number of the first column, counted from the axis' origin: a column shows the same wherever the view is. */
  first: number;
  /** For each column its bin. Never descends. */
  bin: Int32Array;
  /** The lowest and the highest bin. */
  low: number;
  high: number;
  /** For each bin from `low` on the first column that shows it or a later one; one more at the end. */
  next: Int32Array;
}

/** The bins on an axis: ascending places, one a bin. */
export class Axis {
  /** For each bin where it lies; nothing where bins are their own places. */
  private readonly places: Float64Array | null;
  readonly length: number;

  constructor(
    readonly kind: AxisKind,
    readonly picture: Picture,
  ) {
    this.places = kind === "events" ? null : kind === "time" ? picture.times : iterations(picture);
    const last = this.placeOf(picture.bins - 1);
    this.length = kind === "events" ? picture.bins : last > 0 ? last * (1 + 1 / picture.bins) : 1;
  }

  placeOf(bin: number): number {
    return this.places ? this.places[Math.min(bin, this.places.length - 1)] : bin;
  }

  /** The last bin at a place or before it. */
  binAt(place: number): number {
    const bin = this.places ? lastAtMost(this.places, place) : Math.floor(place);
    return Math.max(0, Math.min(this.picture.bins - 1, bin));
  }

  /**
   * At most so many columns of `scale` units each, from a number on, until the axis ends: each shows its fullest bin, or, without one of
   * its own, the last.
   */
  columns(first: number, most: number, scale: number, total: Float64Array): Columns {
    const count = Math.max(0, Math.min(most, Math.ceil(this.length / scale) - first));
    const bin = new Int32Array(count);
    let from = this.after(first * scale);
    for (let column = 0; column < count; column++) {
      const until = this.after((first + column + 1) * scale);
      bin[column] = fullest(total, from, until);
      from = until;
    }
    const low = count > 0 ? bin[0] : 0;
    const high = count > 0 ? bin[count - 1] : 0;
    const next = new Int32Array(high - low + 2).fill(count);
    for (let column = count - 1, at = high - low; at >= 0; at--) {
      while (column > 0 && bin[column - 1] >= low + at) column--;
      next[at] = column;
    }
    return { first, bin, low, high, next };
  }

  /** The first bin at a place or after it. */
  private after(place: number): number {
    if (!this.places) return Math.max(0, Math.min(this.picture.bins, Math.ceil(place)));
    let low = 0;
    let high = this.places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.places[middle] < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const known = new WeakMap<Picture, Map<AxisKind, Axis>>();

/** The axis of a picture: several ask for it. */
export function axisOf(kind: AxisKind, picture: Picture): Axis {
  const axes = known.get(picture) ?? new Map<AxisKind, Axis>();
  known.set(picture, axes);
  const axis = axes.get(kind) ?? new Axis(kind, picture);
  axes.set(kind, axis);
  return axis;
}

function fullest(total: Float64Array, from: number, until: number): number {
  if (from >= until) return Math.max(0, from - 1);
  let best = from;
  for (let bin = from + 1; bin < until; bin++) if (total[bin] > total[best]) best = bin;
  return best;
}

/** What lies before the first iteration takes one unit, each iteration one, and what lies behind the last one. */
function iterations(picture: Picture): Float64Array {
  const { turns, events } = picture.packed;
  const edges = [0, ...turns.map(([start]) => start), turns.at(-1)?.[1] ?? events, events + 1];
  const places = new Float64Array(picture.bins);
  let edge = 0;
  for (let bin = 0; bin < picture.bins; bin++) {
    const moment = picture.shown[bin];
    while (edge + 2 < edges.length && moment >= edges[edge + 1]) edge++;
    const span = Math.max(1, edges[edge + 1] - edges[edge]);
    places[bin] = edge + Math.min(1, (moment - edges[edge]) / span);
  }
  return places;
}
