// A picture, decoded: lifetimes and clouds in arrays, and the tree of who made them.

import type { PackedLabel, PackedPicture } from "./document";

/** What is drawn: all lifetimes, or those that there would be without a finding. */
export interface Scene {
  /** For each lifetime the bin after its last. */
  end: Int32Array;
  clouds: Cloud[];
  /** Bytes in use in each bin. */
  total: Float64Array;
  peak: number;
}

/** Merged lifetimes: from each bin on so many bytes. */
export interface Cloud {
  count: number;
  role: number;
  familiar: number;
  node: number;
  bins: Int32Array;
  level: Float64Array;
}

export interface Without {
  peak: number;
  each: Int32Array;
  ends: number[];
  clouds: [number, number[], number[]][];
}

export interface Guilty {
  finding: number;
  each: Int32Array;
  clouds: number[];
  moment: number | null;
  without: Without | null;
}

export interface Label {
  kind: PackedLabel[0];
  name: string;
  file: string;
  line: number;
  own: boolean;
}

/** Values that were written as steps. */
export function sums(steps: number[]): Float64Array {
  const values = new Float64Array(steps.length);
  let value = 0;
  for (let at = 0; at < steps.length; at++) {
    value += steps[at];
    values[at] = value;
  }
  return values;
}

const positions = (steps: number[]) => Int32Array.from(sums(steps));

/** The last position of an ascending array whose value is at most this; -1 where none is. */
export function lastAtMost(values: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** What a cloud holds in a bin. */
export function levelAt(cloud: Cloud, bin: number): number {
  const at = lastAtMost(cloud.bins, bin);
  return at < 0 ? 0 : cloud.level[at];
}

/** Bytes times bins of a cloud. */
export function areaOf(cloud: Cloud, bins: number): number {
  let area = 0;
  cloud.bins.forEach((from, step) => {
    area += cloud.level[step] * ((cloud.bins[step + 1] ?? bins) - from);
  });
  return area;
}

export class Picture {
  readonly bins: number;
  readonly shown: Int32Array;
  readonly reserved: Float64Array;
  readonly times: Float64Array;
  readonly start: Int32Array;
  readonly bytes: Float64Array;
  readonly role: Uint8Array;
  readonly familiar: Int8Array;
  readonly phase: Int8Array;
  readonly stream: Uint16Array;
  readonly node: Int32Array;
  readonly address: Float64Array;
  readonly labels: Label[];
  readonly callers: number[];
  readonly called: number[];
  readonly guilty: Guilty[];
  readonly phaseBins: Int32Array;
  readonly scene: Scene;
  readonly peakBin: number;
  /** How many of what the program named lie within one another at most. */
  readonly depths: number;
  /** For each node the node of the line that its lifetimes count for; itself where no such line is known. */
  readonly site: Int32Array;

  constructor(readonly packed: PackedPicture) {
    const { each } = packed;
    this.shown = positions(packed.shown);
    this.bins = this.shown.length;
    this.reserved = sums(packed.reserved);
    this.times = sums(packed.times);
    this.start = positions(each.start);
    this.bytes = Float64Array.from(each.bytes);
    this.role = Uint8Array.from(each.role);
    this.familiar = Int8Array.from(each.familiar);
    this.phase = Int8Array.from(each.phase);
    this.stream = Uint16Array.from(each.stream);
    this.node = Int32Array.from(each.node);
    this.address = Float64Array.from(each.address);
    this.callers = packed.tree.callers;
    this.called = packed.tree.called;
    this.labels = packed.tree.labels.map((label) => this.label(label));
    this.site = Int32Array.from(packed.tree.sites, (site, node) => (site === 0 ? node : site));
    this.guilty = packed.guilty.map((one) => ({
      finding: one.finding,
      each: positions(one.each),
      clouds: one.clouds,
      moment: one.moment,
      without: one.without && { ...one.without, each: positions(one.without.each) },
    }));
    this.phaseBins = positions(packed.phases.bins);
    const end = Int32Array.from(each.bins, (bins, at) => (bins < 0 ? this.bins : this.start[at] + bins));
    const clouds = packed.clouds.map(({ bins, by, ...cloud }) => ({
      ...cloud,
      bins: positions(bins),
      level: sums(by),
    }));
    this.scene = this.sceneOf(end, clouds, 0);
    this.scene.peak = this.scene.total.reduce((most, one) => Math.max(most, one), 0);
    this.peakBin = this.binOf(packed.peak);
    this.depths = packed.annotations.reduce((most, [, , , depth]) => Math.max(most, depth + 1), 0);
  }

  get lives(): number {
    return this.start.length;
  }

  /** The bin that shows a moment: the first that shows one as late. */
  binOf(moment: number): number {
    return Math.min(this.bins - 1, lastAtMost(this.shown, moment - 1) + 1);
  }

  /** What would be drawn without a finding. */
  without(change: Without): Scene {
    const end = this.scene.end.slice();
    change.each.forEach((life, at) => {
      end[life] = Math.max(this.start[life], change.ends[at]);
    });
    const clouds = this.scene.clouds.slice();
    for (const [at, bins, by] of change.clouds) {
      clouds[at] = { ...clouds[at], bins: positions(bins), level: sums(by) };
    }
    return this.sceneOf(end, clouds, change.peak);
  }

  /** The nodes from the root to a node, the root left out. */
  path(node: number): number[] {
    const path: number[] = [];
    for (let at = node; at !== 0; at = this.callers[at]) path.push(at);
    return path.reverse();
  }

  labelOf(node: number): Label {
    return this.labels[this.called[node]];
  }

  phaseAt(bin: number): number {
    const run = lastAtMost(this.phaseBins, bin);
    return run < 0 ? -1 : this.packed.phases.phase[run];
  }

  /** The iteration in which a bin's moment lies, from 0; -1 outside of all. */
  turnAt(bin: number): number {
    const moment = this.shown[bin];
    return this.packed.turns.findIndex(([start, end]) => moment > start && moment <= end);
  }

  /** The part of a bin's axis at which a moment lies. */
  positionOf(moment: number): number {
    return moment / this.packed.width;
  }

  addressOf(life: number): string {
    if (this.address[life] < 0) return "unknown";
    return `0x${(BigInt(`0x${this.packed.base}`) + BigInt(this.address[life])).toString(16)}`;
  }

  private sceneOf(end: Int32Array, clouds: Cloud[], peak: number): Scene {
    const steps = new Float64Array(this.bins + 1);
    for (let at = 0; at < end.length; at++) {
      steps[this.start[at]] += this.bytes[at];
      steps[Math.min(end[at], this.bins)] -= this.bytes[at];
    }
    for (const cloud of clouds) {
      let before = 0;
      cloud.bins.forEach((bin, at) => {
        steps[bin] += cloud.level[at] - before;
        before = cloud.level[at];
      });
    }
    const total = new Float64Array(this.bins);
    let level = 0;
    for (let bin = 0; bin < this.bins; bin++) {
      level += steps[bin];
      total[bin] = level;
    }
    return { end, clouds, total, peak };
  }

  private label([kind, name, file, line, own]: PackedLabel): Label {
    const text = (at: number) => this.packed.strings[at] ?? "";
    return { kind, name: text(name), file: text(file), line, own };
  }
}
