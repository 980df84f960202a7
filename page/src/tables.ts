// The same facts as tables: for whoever reads, and for screen readers.

import { called, type Names } from "./describe";
import type { Device } from "./document";
import { element, table } from "./element";
import { levelAt, type Picture, type Scene } from "./picture";
import * as text from "./text";

/** Rows of a table that is drawn at most. */
const MOST = 200;

export function iterations(picture: Picture): HTMLElement {
  const rows = picture.packed.turns
    .slice(0, MOST)
    .map(([start, end, complete, peak, resident], at) => [
      `${at + 1}${complete ? "" : " (part)"}`,
      text.count(end - start),
      text.bytes(peak),
      text.bytes(resident),
    ]);
  const left = picture.packed.turns.length - rows.length;
  const caption = left > 0 ? `Iterations; ${left} more are not listed` : "Iterations";
  return table(caption, ["iteration", "events", "peak", "in use at its end"], rows, [1, 2, 3]);
}

export function sites(picture: Picture): HTMLElement {
  const peak = picture.scene.peak;
  const rows = picture.packed.sites.map((site) => [
    site.place,
    text.bytes(site.at_peak),
    text.percent(site.at_peak, peak),
    text.count(site.count_at_peak),
    site.growth === 0 ? "-" : `${site.growth > 0 ? "+" : ""}${text.bytes(site.growth)}`,
    text.count(site.count),
  ]);
  const head = [
    "line",
    "at the peak",
    "share",
    "allocations there",
    "growth an iteration",
    "allocations in all",
  ];
  return table("Lines that hold most at the peak, or grow", head, rows, [1, 2, 3, 4, 5]);
}

export function roles(picture: Picture, scene: Scene, bin: number, names: Names): HTMLElement {
  const held = new Float64Array(names.roles.length);
  const counted = new Float64Array(names.roles.length);
  for (let life = 0; life < picture.lives; life++) {
    if (picture.start[life] > bin || scene.end[life] <= bin) continue;
    held[picture.role[life]] += picture.bytes[life];
    counted[picture.role[life]]++;
  }
  for (const cloud of scene.clouds) held[cloud.role] += levelAt(cloud, bin);
  const order = names.roles.map((_, at) => at).filter((at) => held[at] > 0);
  order.sort((a, b) => held[b] - held[a]);
  const rows = order.map((at) => [
    text.words(names.roles[at]),
    text.bytes(held[at]),
    text.percent(held[at], scene.total[bin]),
    text.count(counted[at]),
  ]);
  return table(
    "In use at the moment, by role",
    ["role", "bytes", "share", "drawn one by one"],
    rows,
    [1, 2, 3],
  );
}

/** What of a moment people know by a name, largest first: only what is sure, and so a part of it. */
export function familiars(picture: Picture, scene: Scene, bin: number, names: Names): string {
  const held = new Float64Array(names.familiars.length);
  for (let life = 0; life < picture.lives; life++) {
    const familiar = picture.familiar[life];
    if (familiar >= 0 && picture.start[life] <= bin && scene.end[life] > bin)
      held[familiar] += picture.bytes[life];
  }
  for (const cloud of scene.clouds) if (cloud.familiar >= 0) held[cloud.familiar] += levelAt(cloud, bin);
  const order = names.familiars.map((_, at) => at).filter((at) => held[at] > 0);
  order.sort((a, b) => held[b] - held[a]);
  const share = (at: number) => text.percent(held[at], scene.total[bin]);
  return order.map((at) => `${names.familiars[at]} ${text.bytes(held[at])} (${share(at)})`).join(", ");
}

/** The largest lifetimes of a moment. */
export function largest(picture: Picture, scene: Scene, bin: number, names: Names): HTMLElement {
  const alive: number[] = [];
  for (let life = 0; life < picture.lives; life++) {
    if (picture.start[life] <= bin && scene.end[life] > bin) alive.push(life);
  }
  alive.sort((a, b) => picture.bytes[b] - picture.bytes[a]);
  const rows = alive.slice(0, 40).map((life) => {
    const site = picture.labelOf(picture.site[picture.node[life]]);
    return [
      text.bytes(picture.bytes[life]),
      text.words(names.roles[picture.role[life]]),
      called(site),
      text.count(picture.shown[picture.start[life]]),
    ];
  });
  return table(
    "The largest that are alive at the moment",
    ["bytes", "role", "line", "made at event"],
    rows,
    [0, 3],
  );
}

/** A device in figures. */
export function figures(device: Device): HTMLElement {
  const tile = (name: string, value: string) =>
    element("div", "tile", element("dt", "", name), element("dd", "", value));
  const bytes = (value: number | null) => (value === null ? "not known" : text.bytes(value));
  return element(
    "dl",
    "figures",
    tile("peak, requested", bytes(device.peak_requested)),
    tile("peak, allocated", bytes(device.peak_allocated)),
    tile("peak, reserved", bytes(device.peak_reserved)),
    tile("iterations", text.count(device.iterations)),
    tile("allocations", text.count(device.allocations)),
    tile("events", text.count(device.events)),
  );
}
