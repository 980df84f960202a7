// Colours, by what is asked for. The roles' are Okabe and Ito's (2008), which are told apart with any colour vision.

import { areaOf, type Picture } from "./picture";

export type ColourBy = "role" | "site" | "phase" | "stream";

const ROLES: Record<string, string> = {
  parameter: "#0072b2",
  buffer: "#56b4e9",
  gradient: "#e69f00",
  "optimizer-state": "#cc79a7",
  activation: "#009e73",
  input: "#f0e442",
  temporary: "#d55e00",
  workspace: "#8c6d4f",
  communication: "#6f5fb0",
  unknown: "#9a9a9a",
};

const PHASES: Record<string, string> = {
  setup: "#8c8c8c",
  input: "#f0e442",
  forward: "#009e73",
  recomputation: "#56b4e9",
  backward: "#e69f00",
  clipping: "#8c6d4f",
  "optimizer-step": "#cc79a7",
  "zero-grad": "#d55e00",
  evaluation: "#0072b2",
  other: "#bdbdbd",
};

/** For what has no order and no name of its own: the same hues, apart enough next to each other. */
const MANY = Object.values(ROLES).slice(0, 9);

/** From the bottom up: what stays lies below what comes and goes, so that it keeps its place. */
const STACKED = [
  "parameter",
  "buffer",
  "optimizer-state",
  "communication",
  "workspace",
  "input",
  "gradient",
  "activation",
  "temporary",
  "unknown",
];

export function roleColour(role: string): string {
  return ROLES[role] ?? ROLES.unknown;
}

export function phaseColour(phase: string): string {
  return PHASES[phase] ?? PHASES.other;
}

export function someColour(number: number): string {
  return MANY[((number % MANY.length) + MANY.length) % MANY.length];
}

/** The red, green and blue of `#rrggbb`. */
function parts(colour: string): [number, number, number] {
  const value = Number.parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** A pixel as image data has it (little-endian), its light multiplied. */
export function pixel(colour: string, light = 1): number {
  const [red, green, blue] = parts(colour).map((part) => Math.min(255, Math.round(part * light)));
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** How lifetimes are grouped and coloured: groups are stacked one upon the other. */
export interface Colouring {
  names: string[];
  colours: string[];
  /** For each lifetime, and each cloud, its group. */
  ofLife: Uint16Array;
  ofCloud: number[];
}

/** Groups that have a name of their own; what is beyond shares the last. */
const MOST_GROUPS = 24;

export function colouring(by: ColourBy, picture: Picture, roles: string[], phases: string[]): Colouring {
  const clouds = picture.scene.clouds;
  if (by === "role") {
    const names = [...roles].sort((one, other) => STACKED.indexOf(one) - STACKED.indexOf(other));
    const group = roles.map((role) => names.indexOf(role));
    return {
      names,
      colours: names.map(roleColour),
      ofLife: Uint16Array.from(picture.role, (role) => group[role]),
      ofCloud: clouds.map((one) => group[one.role]),
    };
  }
  if (by === "phase") {
    const older = phases.length;
    return {
      names: [...phases, "before the recording"],
      colours: [...phases.map(phaseColour), "#5f6b7a"],
      ofLife: Uint16Array.from(picture.phase, (phase) => (phase < 0 ? older : phase)),
      ofCloud: clouds.map(() => phases.indexOf("other")),
    };
  }
  if (by === "stream") {
    return ranked(
      picture,
      (life) => picture.stream[life],
      () => -1,
      (stream) => (stream < 0 ? "merged" : stream === 0 ? "default stream" : `stream ${stream}`),
    );
  }
  const name = (node: number) => {
    const label = picture.labelOf(node);
    return label.kind === "line" ? `${label.file.split("/").pop()}:${label.line} ${label.name}` : label.kind;
  };
  return ranked(
    picture,
    (life) => picture.site[picture.node[life]],
    (cloud) => picture.site[clouds[cloud].node],
    name,
    (node) => picture.called[node],
  );
}

/** Groups by a key, those that hold most bytes first. */
function ranked(
  picture: Picture,
  ofLife: (life: number) => number,
  ofCloud: (cloud: number) => number,
  name: (key: number) => string,
  same: (key: number) => number = (key) => key,
): Colouring {
  const held = new Map<number, { key: number; area: number }>();
  const add = (key: number, area: number) => {
    const known = held.get(same(key));
    if (known) known.area += area;
    else held.set(same(key), { key, area });
  };
  const { end, clouds } = picture.scene;
  for (let life = 0; life < picture.lives; life++) {
    add(ofLife(life), picture.bytes[life] * (end[life] - picture.start[life]));
  }
  clouds.forEach((cloud, at) => {
    add(ofCloud(at), areaOf(cloud, picture.bins));
  });
  const order = [...held.entries()].sort((a, b) => b[1].area - a[1].area);
  const place = new Map(order.map(([key], at) => [key, Math.min(at, MOST_GROUPS)]));
  const names = order.slice(0, MOST_GROUPS).map(([, { key }]) => name(key));
  if (order.length > MOST_GROUPS) names.push("others");
  const group = (key: number) => place.get(same(key)) ?? 0;
  return {
    names,
    colours: names.map((_, at) => (at === MOST_GROUPS ? ROLES.unknown : someColour(at))),
    ofLife: Uint16Array.from({ length: picture.lives }, (_, life) => group(ofLife(life))),
    ofCloud: clouds.map((_, at) => group(ofCloud(at))),
  };
}
