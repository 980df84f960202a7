// Bytes by who holds them: rows of boxes, each as wide as its share, what it consists of below it.

import { called, type Names } from "./describe";
import { button, element } from "./element";
import { roleColour, someColour } from "./palette";
import { levelAt, type Picture, type Scene } from "./picture";
import * as text from "./text";

export type By = "role" | "calls";
export type Weight = "moment" | "lifetime";

/** A box. */
interface Box {
  name: string;
  title: string;
  colour: string;
  bytes: number;
  parts: Map<string, Box>;
}

/** Boxes narrower than this share are not drawn one by one: together they are one. */
const NARROWEST = 0.002;
/** Rows at most. */
const DEEPEST = 28;

const box = (name: string, title: string, colour: string): Box => ({
  name,
  title,
  colour,
  bytes: 0,
  parts: new Map(),
});

/** What each item weighs: the bytes that it holds at a moment, or bytes times time. */
function weights(picture: Picture, scene: Scene, weight: Weight, bin: number): [number, number][] {
  const weighed: [number, number][] = [];
  const { times, bins } = picture;
  const timed = times[bins - 1] > 0;
  const at = (one: number) => (timed ? times[Math.min(one, bins - 1)] / 1e6 : one);
  for (let life = 0; life < picture.lives; life++) {
    const [start, end] = [picture.start[life], scene.end[life]];
    if (weight === "lifetime") weighed.push([life, picture.bytes[life] * (at(end) - at(start))]);
    else if (start <= bin && end > bin) weighed.push([life, picture.bytes[life]]);
  }
  scene.clouds.forEach((cloud, position) => {
    let held = levelAt(cloud, bin);
    if (weight === "lifetime") {
      held = 0;
      cloud.bins.forEach((from, step) => {
        held += cloud.level[step] * (at(cloud.bins[step + 1] ?? bins) - at(from));
      });
    }
    if (held > 0) weighed.push([picture.lives + position, held]);
  });
  return weighed;
}

/** The boxes of a node, outermost first; without the role and the name, which stand before them. */
function levels(picture: Picture, node: number, by: By, colour: string): Box[] {
  const path = picture.path(node).map((one) => picture.labelOf(one));
  if (by === "calls") {
    const shown = path.filter((label) => label.own || label.kind !== "line");
    return (shown.length > 0 ? shown : path).map((label) => {
      const name = called(label);
      return box(name, label.file || name, someColour(label.file.length + label.name.length));
    });
  }
  const site = picture.labelOf(picture.site[node]);
  const own = site.kind === "line" ? site : undefined;
  const last = path.at(-1);
  const boxes: Box[] = [];
  if (own) boxes.push(box(text.short(own.file), own.file, colour), box(called(own), own.file, colour));
  if (last && last !== own) boxes.push(box(called(last), last.file || called(last), colour));
  return boxes;
}

function grown(picture: Picture, scene: Scene, by: By, weight: Weight, bin: number, names: Names): Box {
  const root = box("all", "all", "#8a8f98");
  // Most items share their makers with others: the boxes of each node, role and name are found once.
  const ways = new Map<number, Box[]>();
  for (const [item, bytes] of weights(picture, scene, weight, bin)) {
    const cloud = item < picture.lives ? null : scene.clouds[item - picture.lives];
    const node = cloud ? cloud.node : picture.node[item];
    const role = cloud ? cloud.role : picture.role[item];
    const familiar = cloud ? cloud.familiar : picture.familiar[item];
    const key = (node * names.roles.length + role) * (names.familiars.length + 1) + familiar + 1;
    let way = ways.get(key);
    if (!way) {
      way = placed(root, picture, node, by, names.roles[role], names.familiars[familiar]);
      ways.set(key, way);
    }
    for (const one of way) one.bytes += bytes;
  }
  return root;
}

/** The boxes from the root to those of a node, made where there are none yet. */
function placed(
  root: Box,
  picture: Picture,
  node: number,
  by: By,
  role: string,
  familiar: string | undefined,
): Box[] {
  const colour = roleColour(role);
  const first = by === "role" ? [box(text.words(role), role, colour)] : [];
  if (by === "role" && familiar !== undefined) first.push(box(familiar, familiar, colour));
  const way = [root];
  let inside = root;
  for (const level of [...first, ...levels(picture, node, by, colour)].slice(0, DEEPEST)) {
    const next = inside.parts.get(level.name) ?? level;
    inside.parts.set(level.name, next);
    way.push(next);
    inside = next;
  }
  return way;
}

/** The parts of a box that is so wide, largest first; those that are too narrow to be seen in one. */
function withoutNarrow(one: Box, width: number): Box[] {
  const parts = [...one.parts.values()].sort((a, b) => b.bytes - a.bytes);
  const wide = parts.filter((part) => (width * part.bytes) / one.bytes >= NARROWEST);
  const narrow = parts.slice(wide.length);
  if (narrow.length < 2) return parts;
  const names = narrow.slice(0, 12).map((part) => part.name);
  if (narrow.length > names.length) names.push("...");
  const rest = box(`${text.count(narrow.length)} smaller ones`, names.join("\n"), "#8a8f98");
  rest.bytes = narrow.reduce((sum, part) => sum + part.bytes, 0);
  return [...wide, rest];
}

/** The boxes of a moment; a press on one shows it alone. */
export class Flame {
  readonly root = element("div", {
    class: "flame",
    attributes: { role: "tree", "aria-label": "bytes by who holds them" },
  });

  show(picture: Picture, scene: Scene, by: By, weight: Weight, bin: number, names: Names): void {
    const all = grown(picture, scene, by, weight, bin, names);
    this.draw(all, all, weight);
  }

  private draw(all: Box, chosen: Box, weight: Weight): void {
    this.root.replaceChildren();
    const amount = (bytes: number) => (weight === "moment" ? text.bytes(bytes) : `${text.bytes(bytes)} x s`);
    const rows: HTMLElement[] = [];
    const place = (one: Box, depth: number, left: number, width: number): void => {
      rows[depth] ??= element("div", "row");
      const what = `${one.name}  ${amount(one.bytes)} (${text.percent(one.bytes, all.bytes)})`;
      const drawn = button(what, () => this.draw(all, one === chosen ? all : one, weight), {
        class: "box",
        title: `${what}\n${one.title}`,
        attributes: { role: "treeitem", "aria-level": String(depth + 1) },
      });
      drawn.style.left = `${100 * left}%`;
      drawn.style.width = `${100 * width}%`;
      drawn.style.setProperty("--colour", one.colour);
      rows[depth].append(drawn);
      let from = left;
      for (const part of withoutNarrow(one, width)) {
        const share = (width * part.bytes) / one.bytes;
        if (share >= NARROWEST) place(part, depth + 1, from, share);
        from += share;
      }
    };
    if (chosen.bytes > 0) place(chosen, 0, 0, 1);
    this.root.append(...rows);
    if (chosen.bytes <= 0) this.root.append(element("p", "empty", "Nothing is in use at this moment."));
  }
}
