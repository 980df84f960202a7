// Several recordings or devices: a strip each, the one that differs most first.

import { type AxisKind, axisOf } from "./axis";
import type { Names } from "./describe";
import type { Alike, Device, PackedPicture, Recording } from "./document";
import { button, element } from "./element";
import { DeviceNames, fullName } from "./names";
import { colouring } from "./palette";
import { Picture } from "./picture";
import { Film, Stack } from "./stack";
import * as text from "./text";
import { isDark, theme } from "./theme";

/** A device with a picture, which is decoded when it is first looked at. */
export class Place {
  private decoded: Picture | null = null;

  constructor(
    readonly recording: number,
    readonly device: Device,
    /** What tells it from the others. */
    readonly name: string,
    /** The whole name. */
    readonly full: string,
    readonly rank: number | null,
    readonly isBase: boolean,
    private readonly packed: PackedPicture,
  ) {}

  get picture(): Picture {
    this.decoded ??= new Picture(this.packed);
    return this.decoded;
  }

  get peak(): number {
    return this.device.peak_requested ?? this.picture.scene.peak;
  }
}

const HEIGHT = 34;
/** Of a line of many. */
const LOW = 16;

/** All devices that have a picture. */
export function places(recordings: Recording[], isBase = false): Place[] {
  const names = new DeviceNames(recordings);
  return recordings.flatMap((recording, at) =>
    recording.devices.flatMap((device) =>
      device.picture
        ? [
            new Place(
              at,
              device,
              names.of(recording, device),
              fullName(recording, device),
              recording.rank,
              isBase,
              device.picture,
            ),
          ]
        : [],
    ),
  );
}

/** Those whose peak is farthest from the middle one first; of equals in their order. */
export function outliersFirst(all: Place[], recordings: Recording[]): Place[] {
  // Of all devices, drawn or not: of those that are drawn of many most are outliers.
  const known = recordings.flatMap((one) => one.devices.map((device) => device.peak_requested ?? 0));
  const peaks = known.sort((a, b) => a - b);
  const middle = peaks[Math.floor((peaks.length - 1) / 2)] ?? 0;
  const apart = (one: Place) => Math.abs(one.peak - middle);
  return [...all].sort((a, b) => apart(b) - apart(a));
}

export class Strips {
  readonly root = element("section", { class: "strips", attributes: { "aria-label": "recordings" } });
  private readonly rows = new Map<Place, { button: HTMLButtonElement; canvas: HTMLCanvasElement }>();
  private readonly most: number;
  private readonly devices: DeviceNames;
  /** What to draw when it comes into view, and after every change that it was in view for. */
  private readonly later = new Map<Element, () => void>();
  private readonly inView = new Set<Element>();
  private readonly watch = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting) {
        this.inView.add(target);
        this.later.get(target)?.();
      } else this.inView.delete(target);
    }
  });

  constructor(
    all: Place[],
    private readonly names: Names,
    recordings: Recording[],
    groups: Alike[],
    choose: (place: Place) => void,
  ) {
    const peaks = recordings.flatMap((one) => one.devices.map((device) => device.peak_requested ?? 0));
    this.most = peaks.reduce((most, one) => Math.max(most, one), 1);
    this.devices = new DeviceNames(recordings);
    const rest = groups.reduce((sum, group) => sum + group.members.length, 0);
    const whole = rest === 0 ? "" : `${text.count(all.length)} of `;
    const heading = `${whole}${text.count(all.length + rest)} timelines, the one that differs most first`;
    this.root.append(element("h2", "", heading));
    for (const place of all) {
      const canvas = element("canvas");
      const row = button("", () => choose(place), { class: "strip", title: place.full });
      row.append(
        element("span", "name", place.name),
        element("span", "peak", text.bytes(place.peak)),
        canvas,
      );
      this.rows.set(place, { button: row, canvas });
      this.drawInView(canvas, () => draw(canvas, place.picture, this.names, this.most));
      this.root.append(row);
    }
    for (const group of groups) this.root.append(this.many(group, recordings));
  }

  /** Draws the strips that are in view, all to one scale, and marks the one that is shown in full. */
  show(chosen: Place): void {
    for (const [place, row] of this.rows) row.button.setAttribute("aria-pressed", String(place === chosen));
    for (const target of this.inView) this.later.get(target)?.();
  }

  private drawInView(canvas: HTMLCanvasElement, act: () => void): void {
    this.later.set(canvas, act);
    this.watch.observe(canvas);
  }

  /** Recordings that are alike: a line each, made when somebody wants to see them. */
  private many(group: Alike, recordings: Recording[]): HTMLElement {
    const count = group.members.length;
    const what = group.rest ? "no two alike" : count === 1 ? "as a curve" : "alike, as curves";
    const peaks = group.peaks === null ? "" : `, peak ${group.peaks}`;
    const summary = element("summary", "", `${text.count(count)} more, ${what}: ${group.label}${peaks}`);
    const list = element("div", "curves");
    const many = element("details", "many", summary, list);
    many.addEventListener("toggle", () => {
      if (!many.open || list.childElementCount > 0) return;
      list.append(...group.members.map(([at, device]) => this.line(recordings[at], device)));
    });
    return many;
  }

  private line(recording: Recording, at: number): HTMLElement {
    const device = recording.devices[at];
    const canvas = element("canvas");
    const peak = device.peak_requested ?? 0;
    this.drawInView(canvas, () => curve(canvas, device.curve ?? [], peak / this.most));
    const told = device.peak_requested === null ? "not known" : text.bytes(peak);
    return element(
      "div",
      { class: "strip low", title: `${fullName(recording, device)}: ${device.summary}` },
      element("span", "name", this.devices.of(recording, device)),
      element("span", "peak", told),
      canvas,
    );
  }
}

/** Draws a curve of parts of a thousand, `share` of the height being its highest. */
function curve(canvas: HTMLCanvasElement, levels: number[], share: number): void {
  const ratio = devicePixelRatio;
  const width = Math.max(16, Math.round(canvas.clientWidth * ratio));
  const height = Math.round(LOW * ratio);
  canvas.style.height = `${LOW}px`;
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  if (!context) return;
  context.fillStyle = theme().plot;
  context.fillRect(0, 0, width, height);
  context.fillStyle = theme().faint;
  levels.forEach((level, column) => {
    const from = Math.round((column * width) / levels.length);
    const until = Math.round(((column + 1) * width) / levels.length);
    const high = Math.max(level > 0 ? 1 : 0, Math.round((height * share * level) / 1000));
    context.fillRect(from, height - high, until - from, high);
  });
}

/** What each canvas shows: drawing it again takes as long as at first. */
const drawn = new WeakMap<HTMLCanvasElement, { picture: Picture; look: string }>();

/** Draws a whole recording, small. */
export function draw(
  canvas: HTMLCanvasElement,
  picture: Picture,
  names: Names,
  most: number,
  { axis: kind, height }: { axis: AxisKind; height: number } = { axis: "events", height: HEIGHT },
): void {
  const ratio = devicePixelRatio;
  const width = Math.max(16, Math.round(canvas.clientWidth * ratio));
  const rows = Math.round(height * ratio);
  const now = { picture, look: [kind, width, rows, most, isDark()].join() };
  const before = drawn.get(canvas);
  if (before?.picture === now.picture && before.look === now.look) return;
  drawn.set(canvas, now);
  canvas.style.height = `${height}px`;
  Object.assign(canvas, { width, height: rows });
  const context = canvas.getContext("2d");
  if (!context) return;
  const colours = colouring("role", picture, names.roles, names.phases);
  const stack = new Stack(picture, picture.scene, colours, null, theme().plot);
  const axis = axisOf(kind, picture);
  const film = new Film(stack, axis, width, rows, most / rows);
  film.show(0, axis.length / width);
  film.draw(context, 0, 0);
}
