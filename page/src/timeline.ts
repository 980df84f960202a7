// The timeline: the stack of lifetimes with what stands around it, zoomed, panned, pointed at.

import { type Axis, axisOf, type Columns } from "./axis";
import { element } from "./element";
import { gestures } from "./gestures";
import { drawAround, drawBehind, drawUpon, type Frame } from "./ornaments";
import type { Shown } from "./shown";
import { Film, type Item, Stack } from "./stack";
import { theme } from "./theme";

/** What it tells. */
export interface Listener {
  /** Somebody points at something, or at nothing. */
  point(item: Item | null, bin: number, x: number, y: number): void;
  /** Somebody chooses something, or nothing, and a moment. */
  choose(item: Item | null, bin: number): void;
  /** Another part of the axis is in view: from one share of it until another. */
  view(from: number, until: number): void;
}

const LEFT = 72;
const RIGHT = 12;
const BOTTOM = 22;
const TURNS = 18;
const PHASES = 12;
const ANNOTATIONS = 13;
/** Depths of annotations that have room. */
const DEPTHS = 2;
/** Pixels that a bin is wide at most. */
const WIDEST = 64;

export class Timeline {
  readonly canvas = element("canvas", {
    class: "timeline",
    attributes: { tabindex: "0", role: "img" },
  });
  private shown: Shown | null = null;
  private film: Film | null = null;
  private axis: Axis | null = null;
  private first = 0;
  private scale = 1;
  private moment = 0;
  private selected: Item | null = null;
  private pointed: Item | null = null;
  private pending = 0;

  constructor(
    private readonly listener: Listener,
    private readonly height: number,
  ) {
    this.canvas.style.height = `${height}px`;
    gestures(this.canvas, this);
    new ResizeObserver(() => {
      if (this.film?.width !== this.columnCount()) this.rebuild();
    }).observe(this.canvas);
  }

  /** Shows something else; where the axis stays the same, so does the view. */
  show(shown: Shown): void {
    const axis = axisOf(shown.axis, shown.picture);
    const anew = this.axis !== axis;
    if (this.shown?.picture !== shown.picture) {
      this.moment = shown.picture.peakBin;
      this.selected = null;
    }
    this.shown = shown;
    this.axis = axis;
    this.pointed = null;
    this.rebuild(anew);
  }

  /** Everything. */
  reset(): void {
    this.scale = this.widest();
    this.first = 0;
    this.request();
  }

  /** Shows the same part of its own axis as another does of its. */
  follow(other: Timeline): void {
    if (this.first === other.first && this.scale === other.scale) return;
    this.first = other.first;
    this.scale = other.scale;
    this.request();
  }

  /** Moves by pixels of the page. */
  pan(pixels: number): void {
    this.moveTo(this.first + Math.round(pixels * devicePixelRatio));
  }

  /** Zooms by a factor around a place of the canvas; around the moment where none is given. */
  zoom(factor: number, x?: number): void {
    const { axis } = this;
    if (!axis) return;
    const column = x === undefined ? this.columnOf(axis.placeOf(this.moment)) : this.columnAt(x);
    const place = (this.first + column) * this.scale;
    this.scale = Math.max(this.narrowest(), Math.min(this.widest(), this.scale * factor));
    this.moveTo(Math.round(place / this.scale - column));
  }

  /** Shows what lies between two places of the canvas. */
  frame(from: number, until: number): void {
    const [low, high] = [Math.min(from, until), Math.max(from, until)].map((x) => this.columnAt(x));
    if (high - low < 4) return;
    const start = (this.first + low) * this.scale;
    this.scale = Math.max(this.narrowest(), (this.scale * (high - low)) / this.columnCount());
    this.moveTo(Math.round(start / this.scale));
  }

  /** Goes to a moment. */
  goTo(bin: number): void {
    const { axis } = this;
    if (!axis) return;
    this.moment = Math.max(0, Math.min(axis.picture.bins - 1, bin));
    const column = this.columnOf(axis.placeOf(this.moment));
    if (column < 0 || column >= this.columnCount()) this.centre(axis.placeOf(this.moment) / this.length);
    this.request();
  }

  /** Marks what was chosen elsewhere, or nothing. */
  select(item: Item | null): void {
    this.selected = item;
    this.request();
  }

  /** Moves to another moment, by bins, and tells. */
  step(bins: number): void {
    this.goTo(this.moment + bins);
    this.listener.choose(this.selected, this.moment);
  }

  goToPeak(): void {
    if (!this.shown) return;
    this.goTo(this.shown.picture.peakBin);
    this.listener.choose(this.selected, this.moment);
  }

  /** Brings a share of the axis to the middle. */
  centre(share: number): void {
    this.moveTo(Math.round((share * this.length) / this.scale - this.columnCount() / 2));
  }

  point(x: number, y: number): void {
    const found = this.at(x, y);
    if (found?.item !== this.pointed) {
      this.pointed = found?.item ?? null;
      this.request();
    }
    this.listener.point(found?.item ?? null, found?.bin ?? 0, x, y);
  }

  leave(): void {
    this.pointed = null;
    this.listener.point(null, 0, 0, 0);
    this.request();
  }

  choose(x: number, y: number): void {
    const found = this.at(x, y);
    if (!found) return;
    this.selected = found.item;
    this.moment = found.bin;
    this.listener.choose(found.item, found.bin);
    this.request();
  }

  /** How far the axis reaches: its own, or another timeline's. */
  private get length(): number {
    return Math.max(this.axis?.length ?? 1, this.shown?.length ?? 0);
  }

  private at(x: number, y: number): { item: Item | null; bin: number } | null {
    const { film } = this;
    const columns = this.columns();
    const column = this.columnAt(x);
    if (!film || !columns || column < 0 || column >= columns.bin.length) return null;
    const bin = columns.bin[column];
    const height = (this.height - BOTTOM - y) * devicePixelRatio * film.unit;
    return { item: height < 0 ? null : film.stack.at(bin, height), bin };
  }

  private columns(): Columns | null {
    return this.film?.show(this.first, this.scale) ?? null;
  }

  private columnAt(x: number): number {
    return Math.floor((x - LEFT) * devicePixelRatio);
  }

  private columnOf(place: number): number {
    return Math.floor(place / this.scale) - this.first;
  }

  private columnCount(): number {
    return Math.max(16, Math.round((this.canvas.clientWidth - LEFT - RIGHT) * devicePixelRatio));
  }

  private widest(): number {
    return this.length / this.columnCount();
  }

  /** The scale at which a bin is as wide as it can be. */
  private narrowest(): number {
    const { axis } = this;
    return Math.min(this.widest(), axis ? axis.length / axis.picture.bins / (WIDEST * devicePixelRatio) : 1);
  }

  private moveTo(first: number): void {
    const last = Math.max(0, Math.ceil(this.length / this.scale) - this.columnCount());
    this.first = Math.max(0, Math.min(last, first));
    this.request();
  }

  private rows(): number {
    return Math.min(DEPTHS, this.shown?.picture.depths ?? 0);
  }

  private above(): number {
    return TURNS + PHASES + this.rows() * ANNOTATIONS + 4;
  }

  private rebuild(anew = false): void {
    const { shown, axis } = this;
    if (!shown || !axis || this.canvas.clientWidth === 0) return;
    const colours = theme();
    const height = Math.max(32, Math.round((this.height - this.above() - BOTTOM) * devicePixelRatio));
    const most = shown.picture.scene.peak;
    const reserved = shown.reserved ? shown.picture.reserved.reduce((a, b) => Math.max(a, b), 0) : 0;
    const unit = Math.max(1, (shown.top ?? Math.max(most, reserved)) * 1.04) / height;
    const stack = new Stack(shown.picture, shown.scene, shown.colours, shown.lit, colours.plot);
    const before = this.film?.width;
    this.film = new Film(stack, axis, this.columnCount(), height, unit);
    if (anew || before !== this.film.width) this.reset();
    this.request();
  }

  private request(): void {
    if (this.pending !== 0) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  private draw(): void {
    const { film, shown, axis, canvas } = this;
    const context = canvas.getContext("2d");
    if (!film || !shown || !axis || !context) return;
    const ratio = devicePixelRatio;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const columns = film.show(this.first, this.scale);
    const frame: Frame = {
      context,
      theme: theme(),
      ratio,
      columns,
      axis,
      scale: this.scale,
      shown,
      left: LEFT * ratio,
      top: this.above() * ratio,
      width: film.width,
      height: film.height,
      unit: film.unit,
      rows: {
        turns: TURNS * ratio,
        phases: PHASES * ratio,
        annotations: ANNOTATIONS * ratio,
        depths: this.rows(),
      },
      taken: [],
    };
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    drawBehind(frame);
    film.draw(context, frame.left, frame.top);
    drawUpon(frame, this.moment);
    // What is in view and where labels stand, for whoever cannot see it: tests ask.
    const last = (this.first + film.width) * this.scale;
    canvas.dataset.view = `${(this.first * this.scale).toFixed(3)} to ${last.toFixed(3)}`;
    canvas.dataset.labels = frame.taken.map((box) => box.map(Math.round).join(" ")).join(";");
    if (this.pointed !== null && this.pointed !== this.selected) this.outline(frame, this.pointed, false);
    if (this.selected !== null) this.outline(frame, this.selected, true);
    drawAround(frame);
    const from = (this.first * this.scale) / this.length;
    this.listener.view(from, from + (film.width * this.scale) / this.length);
  }

  private outline(frame: Frame, item: Item, strong: boolean): void {
    const { film } = this;
    if (!film) return;
    const [low, high] = film.edges(item);
    const { context, left, top, height } = frame;
    const y = (edge: number) => top + height - Math.round(edge);
    context.beginPath();
    for (let from = 0; from < low.length; from++) {
      if (high[from] <= low[from]) continue;
      let until = from;
      while (until < low.length && high[until] > low[until]) until++;
      context.moveTo(left + from, y(low[from]));
      for (let at = from; at < until; at++) {
        context.lineTo(left + at, y(low[at]));
        context.lineTo(left + at + 1, y(low[at]));
      }
      for (let at = until - 1; at >= from; at--) {
        context.lineTo(left + at + 1, y(high[at]));
        context.lineTo(left + at, y(high[at]));
      }
      context.closePath();
      from = until;
    }
    context.lineWidth = (strong ? 2 : 1.5) * frame.ratio;
    context.strokeStyle = frame.theme.text;
    context.stroke();
  }
}
