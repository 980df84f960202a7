// Several recordings or devices: a strip each, the one that differs most first.

import { Axis, type AxisKind } from "./axis";
import type { Names } from "./describe";
import type { Device, Recording } from "./document";
import { button, element } from "./element";
import { colouring } from "./palette";
import { Picture } from "./picture";
import { Film, Stack } from "./stack";
import * as text from "./text";
import { isDark, theme } from "./theme";

/** A device with a picture. */
export interface Place {
  recording: number;
  device: Device;
  name: string;
  rank: number | null;
  picture: Picture;
}

const HEIGHT = 34;

/** All devices that have a picture. */
export function places(recordings: Recording[]): Place[] {
  return recordings.flatMap((recording, at) =>
    recording.devices.flatMap((device) => {
      if (!device.picture) return [];
      const several = recording.devices.length > 1 ? `, device ${device.device}` : "";
      const name = recording.rank === null ? recording.name : `rank ${recording.rank}`;
      const picture = new Picture(device.picture);
      return [{ recording: at, device, name: `${name}${several}`, rank: recording.rank, picture }];
    }),
  );
}

/** Those whose peak is farthest from the middle one first; of equals in their order. */
export function outliersFirst(all: Place[]): Place[] {
  const peaks = all.map((one) => one.picture.scene.peak).sort((a, b) => a - b);
  const middle = peaks[Math.floor((peaks.length - 1) / 2)] ?? 0;
  const apart = (one: Place) => Math.abs(one.picture.scene.peak - middle);
  return [...all].sort((a, b) => apart(b) - apart(a));
}

export class Strips {
  readonly root = element("section", { class: "strips", attributes: { "aria-label": "recordings" } });
  private readonly rows = new Map<Place, { button: HTMLButtonElement; canvas: HTMLCanvasElement }>();

  constructor(
    private readonly all: Place[],
    private readonly names: Names,
    choose: (place: Place) => void,
  ) {
    this.root.append(element("h2", "", `${all.length} timelines, the one that differs most first`));
    for (const place of all) {
      const canvas = element("canvas");
      const row = button("", () => choose(place), "strip");
      row.append(
        element("span", "name", place.name),
        element("span", "peak", text.bytes(place.picture.scene.peak)),
        canvas,
      );
      this.rows.set(place, { button: row, canvas });
      this.root.append(row);
    }
  }

  /** Draws all strips to one scale, and marks the one that is shown in full. */
  show(chosen: Place): void {
    const most = Math.max(1, ...this.all.map((one) => one.picture.scene.peak));
    for (const [place, row] of this.rows) {
      row.button.setAttribute("aria-pressed", String(place === chosen));
      draw(row.canvas, place.picture, this.names, most);
    }
  }
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
  const axis = new Axis(kind, picture);
  const film = new Film(stack, axis, width, rows, most / rows);
  film.show(0, axis.length / width);
  film.draw(context, 0, 0);
}
