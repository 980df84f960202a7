// A lifetime or a cloud in words.

import { element } from "./element";
import { type Label, levelAt, type Picture, type Scene } from "./picture";
import type { Item } from "./stack";
import * as text from "./text";

/** The names that a picture's columns count by. */
export interface Names {
  roles: string[];
  familiars: string[];
  phases: string[];
}

/** Labels in words: each is asked for many times. */
const known = new WeakMap<Label, string>();

/** A label of the tree for people. */
export function called(label: Label): string {
  const before = known.get(label);
  if (before !== undefined) return before;
  const made = spelt(label);
  known.set(label, made);
  return made;
}

function spelt(label: Label): string {
  switch (label.kind) {
    case "line":
      return `${text.short(label.file)}:${label.line} ${label.name}`;
    case "operator":
      return `[${label.name}]`;
    case "engine":
      return "[autograd engine]";
    case "no-stack":
      return "(no stack was recorded)";
    case "older":
      return "(older than the recording)";
    case "merged":
      return "(many small ones, merged)";
    case "all":
      return "all";
  }
}

/** What an item is, in a word or two. */
export function title(picture: Picture, scene: Scene, item: Item, bin: number, names: Names): string {
  const what = (role: number, familiar: number) =>
    text.words(names.roles[role]) + (familiar < 0 ? "" : `: ${names.familiars[familiar]}`);
  if (item < picture.lives)
    return `${text.bytes(picture.bytes[item])} ${what(picture.role[item], picture.familiar[item])}`;
  const cloud = scene.clouds[item - picture.lives];
  return `${text.bytes(levelAt(cloud, bin))} ${what(cloud.role, cloud.familiar)}, merged`;
}

/** When a lifetime began and ended. */
function span(picture: Picture, scene: Scene, life: number, names: Names): string[] {
  const [start, end] = [picture.start[life], scene.end[life]];
  const turn = (bin: number) => {
    const found = picture.turnAt(Math.min(bin, picture.bins - 1));
    return found < 0 ? "" : `, iteration ${found + 1}`;
  };
  const phase = picture.phase[life];
  const born =
    phase < 0
      ? "older than the recording"
      : `made at event ${text.count(picture.shown[start])}${turn(start)}, ${text.words(names.phases[phase])}`;
  if (end >= picture.bins) return [born, "alive at the end"];
  const time = picture.times[end] - picture.times[start];
  const events = picture.shown[end] - picture.shown[start];
  const lived = `${text.count(events)} events${time > 0 ? `, ${text.duration(time)}` : ""}`;
  return [born, `lives ${lived}; freed at event ${text.count(picture.shown[end])}${turn(end)}`];
}

/** The lines below a title. */
export function facts(picture: Picture, scene: Scene, item: Item, names: Names): string[] {
  if (item >= picture.lives) {
    const cloud = scene.clouds[item - picture.lives];
    return [`${text.count(cloud.count)} lifetimes of one line, too many or too small to be drawn one by one`];
  }
  const stream = picture.stream[item];
  const slack = picture.packed.each.slack[item];
  const block = slack > 0 ? `, ${text.bytes(slack)} of its block unused` : "";
  return [
    ...span(picture, scene, item, names),
    `at ${picture.addressOf(item)}${stream > 0 ? `, stream ${stream}` : ""}${block}`,
  ];
}

/** The stack of an item, innermost first: the user's own lines stand out. */
export function stack(picture: Picture, scene: Scene, item: Item, most: number): HTMLElement {
  const node = item < picture.lives ? picture.node[item] : scene.clouds[item - picture.lives].node;
  const path = picture.path(node).reverse();
  const list = element("ol", "stack");
  const own = path.filter((one) => picture.labelOf(one).own || picture.labelOf(one).kind !== "line");
  const shown = path.length > most ? own.slice(0, most) : path;
  for (const one of shown) {
    const label = picture.labelOf(one);
    list.append(element("li", { class: label.own ? "own" : "", title: label.file }, called(label)));
  }
  const left = path.length - shown.length;
  if (left > 0) list.append(element("li", "more", `${left} more frames`));
  return list;
}
