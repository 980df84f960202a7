// The timelines: the one that is looked at, with all of it small below, or with its base below, iteration by iteration.

import { type AxisKind, axisOf } from "./axis";
import { facts, type Names, stack, title } from "./describe";
import { element } from "./element";
import type { Scene } from "./picture";
import type { Shown } from "./shown";
import type { Item } from "./stack";
import { draw, type Place } from "./strips";
import { Timeline } from "./timeline";

/** Somebody chooses something of a recording, or nothing, and a moment. */
type Choose = (place: Place, scene: Scene, item: Item | null, bin: number) => void;

/** A timeline alone has more room than one of two. */
const ALONE = 420;
const BESIDE = 300;
/** How high all of it is drawn, and how much lower than it could be. */
const SMALL = 36;
const BELOW_EDGE = 1.04;

export class Plots {
  readonly root = element("section", { class: "plot", attributes: { "aria-label": "timeline" } });
  readonly timeline: Timeline;
  private readonly before: Timeline | null = null;
  private readonly captions: HTMLElement[] = [];
  private readonly overview = element("canvas", { attributes: { "aria-hidden": "true" } });
  private readonly window = element("div", "window");
  private readonly tip = element("div", { class: "tip", attributes: { role: "status" } });
  /** What each timeline shows: of the base's only where there is one. */
  private readonly shown = new Map<Timeline, { place: Place; scene: Scene }>();

  constructor(
    private readonly names: Names,
    hasBase: boolean,
    private readonly choose: Choose,
  ) {
    this.timeline = this.made(hasBase ? BESIDE : ALONE);
    if (hasBase) {
      this.before = this.made(BESIDE);
      this.captions = [element("p", "caption"), element("p", "caption")];
      const [one, other] = this.captions;
      this.root.append(one, this.timeline.canvas, other, this.before.canvas);
    } else this.root.append(this.timeline.canvas, this.whole());
    this.root.append(this.tip);
  }

  /** Shows a recording, and its base to the same scale. */
  show(place: Place, shown: Shown, base: { place: Place; shown: Shown } | null): void {
    const { before } = this;
    if (before && base) {
      this.captions[0].textContent = place.full;
      this.captions[1].textContent = `The base, ${base.place.full}, to the same scale:`;
      const length = (of: Shown) => axisOf(of.axis, of.picture).length;
      const most = Math.max(length(shown), length(base.shown));
      this.set(this.timeline, place, { ...shown, length: most });
      this.set(before, base.place, { ...base.shown, length: most });
    } else this.set(this.timeline, place, shown);
    this.small(shown.axis);
  }

  /** Draws what is drawn small anew, where its width is another. */
  small(axis: AxisKind): void {
    const place = this.shown.get(this.timeline)?.place;
    if (this.before || !place) return;
    const { picture } = place;
    draw(this.overview, picture, this.names, picture.scene.peak * BELOW_EDGE, { axis, height: SMALL });
  }

  /** Marks what was chosen elsewhere, in the timeline of its recording. */
  select(place: Place, item: Item): void {
    for (const [timeline, shown] of this.shown) timeline.select(shown.place === place ? item : null);
  }

  private set(timeline: Timeline, place: Place, shown: Shown): void {
    this.shown.set(timeline, { place, scene: shown.scene });
    timeline.show(shown);
    const { device, picture } = place;
    const of = place.isBase ? "The base's memory" : "Memory";
    const label = `${of} over ${shown.axis}: ${device.summary}. ${device.composition}. The tables below say the same.`;
    timeline.canvas.setAttribute("aria-label", label);
    timeline.canvas.dataset.lives = String(picture.lives);
  }

  private made(height: number): Timeline {
    const timeline = new Timeline(
      {
        point: (item, bin, x, y) => this.point(timeline, item, bin, x, y),
        choose: (item, bin) => this.chosen(timeline, item, bin),
        view: (from, until) => this.view(timeline, from, until),
      },
      height,
    );
    return timeline;
  }

  private chosen(timeline: Timeline, item: Item | null, bin: number): void {
    const shown = this.shown.get(timeline);
    if (!shown) return;
    for (const other of this.shown.keys()) if (other !== timeline) other.select(null);
    this.choose(shown.place, shown.scene, item, bin);
  }

  /** Whichever is moved, the other shows the same part. */
  private view(timeline: Timeline, from: number, until: number): void {
    for (const other of this.shown.keys()) other.follow(timeline);
    this.window.style.left = `${100 * from}%`;
    this.window.style.width = `${100 * Math.min(1 - from, until - from)}%`;
    this.window.hidden = until - from > 0.999;
  }

  /** All of it, small; a press brings the place to the middle of what is shown large. */
  private whole(): HTMLElement {
    const whole = element("div", "overview", this.overview, this.window);
    const centre = (event: PointerEvent) => {
      if (event.buttons === 1) this.timeline.centre(event.offsetX / Math.max(1, this.overview.clientWidth));
    };
    whole.addEventListener("pointerdown", centre);
    whole.addEventListener("pointermove", centre);
    return whole;
  }

  private point(timeline: Timeline, item: Item | null, bin: number, x: number, y: number): void {
    const { tip } = this;
    const shown = this.shown.get(timeline);
    tip.hidden = item === null;
    if (item === null || !shown) return;
    const { scene, place } = shown;
    tip.replaceChildren(
      element("strong", "", title(place.picture, scene, item, bin, this.names)),
      ...facts(place.picture, scene, item, this.names).map((line) => element("p", "", line)),
      stack(place.picture, scene, item, 8),
    );
    const { canvas } = timeline;
    const width = canvas.clientWidth;
    tip.style.left = x > width / 2 ? "" : `${x + 16}px`;
    tip.style.right = x > width / 2 ? `${width - x + 16}px` : "";
    tip.style.top = `${canvas.offsetTop + Math.max(0, Math.min(y, 240))}px`;
  }
}
