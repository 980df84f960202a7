// The page as a whole: its parts, and what choosing something in one does to the others.

import type { AxisKind } from "./axis";
import { Cards, type Drawn } from "./cards";
import type { Names } from "./describe";
import type { PageDocument } from "./document";
import { button, choice, element } from "./element";
import { follow, SCROLLS } from "./gestures";
import { type ColourBy, type Colouring, colouring, phaseColour } from "./palette";
import { Panels } from "./panels";
import type { Guilty, Scene } from "./picture";
import { Plots } from "./plots";
import type { Shown } from "./shown";
import type { Lit } from "./stack";
import { outliersFirst, type Place, places, Strips } from "./strips";
import * as tables from "./tables";
import * as text from "./text";
import { toggle } from "./theme";

const AXES = [
  ["events", "Events"],
  ["time", "Time"],
  ["iterations", "Iterations"],
] as const;
const SEVERITIES = ["error", "warning", "info"] as const;
const COLOURS = [
  ["role", "Role"],
  ["site", "Line"],
  ["phase", "Phase"],
  ["stream", "Stream"],
] as const;

export class Page {
  readonly root = element("main");
  private readonly names: Names;
  private readonly all: Place[];
  private readonly base: Place[];
  private place: Place | null;
  private axis: AxisKind;
  private colourBy: ColourBy = "role";
  private reserved = true;
  private finding: number | null = null;
  private without = false;
  private scene: Scene | null = null;
  private readonly plots: Plots;
  private readonly legend = element("ul", { class: "legend", attributes: { "aria-label": "colours" } });
  private readonly phases = element("ul", { class: "legend", attributes: { "aria-label": "phases" } });
  private readonly about = element("section", {
    class: "about",
    attributes: { "aria-label": "the recording" },
  });
  private readonly cards: Cards;
  private readonly panels: Panels;
  private readonly strips: Strips | null;

  constructor(private readonly document: PageDocument) {
    this.names = { roles: document.roles, familiars: document.familiars, phases: document.phases };
    this.all = outliersFirst(places(document.recordings), document.recordings);
    this.base = places(document.base, true);
    this.place = this.all[0] ?? null;
    this.axis = this.base.length > 0 ? "iterations" : "events";
    this.plots = new Plots(this.names, this.base.length > 0, (place, scene, item, bin) =>
      this.panels.show(place, scene, item, bin),
    );
    this.cards = new Cards(document, {
      choose: (finding, without) => this.light(finding, without),
      drawn: (finding) => this.drawn(finding),
    });
    this.panels = new Panels(this.names, (place, item) => {
      this.plots.select(place, item);
      this.panels.showItem(item);
    });
    const { recordings, groups } = document;
    const several = this.all.length > 1 || groups.length > 0;
    this.strips = several
      ? new Strips(this.all, this.names, recordings, groups, (place) => this.visit(place))
      : null;
    this.root.append(this.header(), this.body());
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("theme", () => this.refresh());
    addEventListener("resize", () => this.small());
  }

  /** Draws what needs to be on the page to be drawn. */
  start(): void {
    this.refresh();
    if (this.place) this.panels.show(this.place, this.scene, null, this.place.picture.peakBin);
  }

  private header(): HTMLElement {
    const { findings, notices } = this.document;
    const said = [...findings.filter((one) => one.open), ...notices].map((one) => one.severity);
    const severity = SEVERITIES.find((one) => said.includes(one)) ?? "none";
    return element(
      "header",
      severity,
      element("div", "brand", "memlint"),
      element(
        "div",
        "verdict",
        element("h1", "", this.document.headline),
        element("p", "", this.document.verdict),
      ),
      button("Dark / light", toggle),
    );
  }

  private body(): HTMLElement {
    const left = element("div", "left");
    if (this.place) {
      left.append(this.about, this.controls(), this.plots.root, this.legend, this.phases);
      if (this.document.differences.length > 0) left.append(this.differences());
      if (this.strips) left.append(this.strips.root);
      left.append(this.panels.root);
    }
    const hidden = this.hidden();
    if (hidden) left.append(hidden);
    return element("div", "columns", left, this.cards.root);
  }

  /** The devices of which there is no timeline, and why. */
  private hidden(): HTMLElement | null {
    const list = element("ul");
    for (const recording of this.document.recordings) {
      for (const device of recording.devices.filter((one) => one.picture === null && !one.curve?.length)) {
        const kind = device.kind ? `; ${device.kind}` : "";
        list.append(element("li", "", `${recording.name}: ${device.summary}${kind}`));
      }
    }
    if (list.childElementCount === 0) return null;
    return element("section", "nothing", element("h2", "", "There is no timeline to show"), list);
  }

  private controls(): HTMLElement {
    const shown = element("input", { attributes: { type: "checkbox" } });
    shown.checked = this.reserved;
    shown.addEventListener("change", () => {
      this.reserved = shown.checked;
      this.refresh();
    });
    return element(
      "div",
      "controls",
      choice("horizontal axis", AXES, this.axis, (axis) => {
        this.axis = axis;
        this.refresh();
      }),
      choice("colour by", COLOURS, this.colourBy, (by) => {
        this.colourBy = by;
        this.refresh();
      }),
      element("label", "", shown, " reserved"),
      button("Whole", () => this.plots.timeline.reset()),
      button("Peak", () => this.plots.timeline.goToPeak()),
      element(
        "p",
        "keys",
        "wheel zooms, drag moves, shift+drag frames, a press chooses; keys: arrows, +, -, 0, p, n",
      ),
    );
  }

  private differences(): HTMLElement {
    const lines = this.document.differences.join("\n");
    return element(
      "section",
      "differences",
      element("h2", "", "Against the base"),
      element("pre", "", lines),
    );
  }

  /** Shows another recording. */
  private visit(place: Place): void {
    this.place = place;
    this.refresh();
    this.panels.show(place, this.scene, null, place.picture.peakBin);
  }

  private guilty(): Guilty | null {
    return this.place?.picture.guilty.find((one) => one.finding === this.finding) ?? null;
  }

  private drawn(finding: number): Drawn {
    const { place } = this;
    const one = place?.picture.guilty.find((guilty) => guilty.finding === finding);
    if (!one || !place) return { about: 0, where: "", mendable: false };
    const merged = one.clouds.reduce((sum, at) => sum + place.picture.scene.clouds[at].count, 0);
    const where = one.moment === null ? "" : this.where(finding, one.moment);
    return { about: one.each.length + merged, where, mendable: one.without !== null };
  }

  /** What can be seen at the moment of a finding that is about no lifetime. */
  private where(finding: number, moment: number): string {
    if (this.place?.picture.packed.failures.some(([at]) => at === moment)) return "where memory ran out";
    const ofAllocator = this.document.findings[finding].group === "allocator";
    return ofAllocator ? "where most is reserved beside what is in use" : "the peak";
  }

  /** Goes to the moment of a finding that is about no lifetime. */
  private goTo(guilty: Guilty): void {
    const { place } = this;
    if (guilty.moment === null || !place) return;
    const bin = place.picture.binOf(guilty.moment);
    this.plots.timeline.goTo(bin);
    this.panels.show(place, this.scene, null, bin);
    if (this.document.findings[guilty.finding].group === "allocator") this.panels.open("segments");
  }

  /** Chooses a finding: where it is of another recording, shows that. */
  private light(finding: number | null, without: boolean): void {
    this.finding = finding;
    this.without = without;
    const one = finding === null ? null : this.document.findings[finding];
    const drawn = finding === null ? null : this.drawn(finding);
    const here = drawn === null || drawn.about > 0 || drawn.where !== "";
    const there = this.all.find((place) => {
      const device = one?.device ?? null;
      return place.recording === one?.recording && (device === null || place.device.device === device);
    });
    if (!here && there && there !== this.place) this.visit(there);
    else {
      this.refresh();
      this.panels.rescene(this.scene);
    }
    const guilty = this.guilty();
    if (guilty) this.goTo(guilty);
  }

  private lit(): Lit | null {
    const guilty = this.guilty();
    if (!guilty || !this.place || guilty.each.length + guilty.clouds.length === 0) return null;
    const lives = new Uint8Array(this.place.picture.lives);
    for (const life of guilty.each) lives[life] = 1;
    return { lives, clouds: new Set(guilty.clouds) };
  }

  /** Shows everything anew. */
  private refresh(): void {
    const { place } = this;
    this.cards.refresh();
    if (!place) return;
    const { picture } = place;
    const change = this.without ? this.guilty()?.without : null;
    this.scene = change ? picture.without(change) : picture.scene;
    const colours = colouring(this.colourBy, picture, this.names.roles, this.names.phases);
    const base = counterpart(place, this.base);
    const most = Math.max(picture.scene.peak, base?.picture.scene.peak ?? 0);
    const held = (of: Place) => of.picture.reserved.reduce((a, b) => Math.max(a, b), 0);
    const top = base && Math.max(most, this.reserved ? Math.max(held(place), held(base)) : 0);
    const common = {
      axis: this.axis,
      reserved: this.reserved,
      phases: this.names.phases,
      ...(top ? { top } : {}),
    };
    const shown = { picture, scene: this.scene, colours, lit: this.lit(), ...common };
    const below = base ? { place: base, shown: this.asRecorded(base, common, colours) } : null;
    this.plots.show(place, shown, below);
    this.label(place);
    this.explain(below ? [shown, below.shown] : [shown]);
    this.small();
  }

  /** What a timeline shows of a base: all of it, and nothing lit. What is called the same has the same colour. */
  private asRecorded(
    { picture }: Place,
    common: Pick<Shown, "axis" | "reserved" | "phases" | "top">,
    above: Colouring,
  ): Shown {
    const known = new Map(above.names.map((name, at) => [name, above.colours[at]]));
    const own = colouring(this.colourBy, picture, this.names.roles, this.names.phases);
    const colours = { ...own, colours: own.names.map((name, at) => known.get(name) ?? own.colours[at]) };
    return { picture, scene: picture.scene, colours, lit: null, ...common };
  }

  /** What is drawn small. */
  private small(): void {
    if (!this.place) return;
    this.plots.small(this.axis);
    this.strips?.show(this.place);
  }

  private label(place: Place): void {
    const { device } = place;
    const recording = this.document.recordings[place.recording];
    const gaps = recording.gaps.map((gap) => element("li", "", gap));
    this.about.replaceChildren(
      element("h2", "name", recording.name),
      element("p", "", device.summary),
      ...(device.composition !== "" ? [element("p", "", `at the peak: ${device.composition}`)] : []),
      ...(device.kind !== null ? [element("p", "", `recording: ${device.kind}`)] : []),
      ...(gaps.length > 0
        ? [
            element(
              "details",
              "",
              element("summary", "", "What the recording lacks"),
              element("ul", "", ...gaps),
            ),
          ]
        : []),
      tables.figures(device),
    );
  }

  /** Says what the colours of some timelines mean. */
  private explain(all: Shown[]): void {
    const used = new Map(all.flatMap((one) => inUse(one.colours)));
    this.legend.replaceChildren(...swatches([...used]));
    const there = new Set(all.flatMap((one) => one.picture.packed.phases.phase));
    const phases = [...there].sort((one, other) => one - other);
    const shown = phases.map((at) => [this.names.phases[at], phaseColour(this.names.phases[at])] as const);
    this.phases.replaceChildren(element("li", "", "phases:"), ...swatches(shown));
  }

  private key(event: KeyboardEvent): void {
    if (event.defaultPrevented || isWriting(event.target)) return;
    const { timeline } = this.plots;
    const isOnPage = SCROLLS.includes(event.key);
    if (!isOnPage && follow(event, timeline, timeline.canvas.clientWidth)) event.preventDefault();
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "n") this.cards.step(1);
    else if (event.key === "N") this.cards.step(-1);
    else if (event.key === "Escape") this.cards.choose(null);
  }
}

/** Whether somebody writes there: a switch takes no letters. */
function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "checkbox";
  return target instanceof HTMLTextAreaElement || (target instanceof HTMLElement && target.isContentEditable);
}

/** The colours that are there, by name. */
function inUse(colours: Colouring): [string, string][] {
  const used = new Set<number>(colours.ofCloud);
  for (const group of colours.ofLife) used.add(group);
  const rows = colours.names.map((name, at): [string, string] => [name, colours.colours[at]]);
  return rows.filter((_, at) => used.has(at));
}

/** What stands beside a device: the same device of the same rank, as far as there is one. */
function counterpart(place: Place, base: Place[]): Place | undefined {
  const ofRank = base.filter((one) => one.rank === place.rank);
  const among = ofRank.length > 0 ? ofRank : base;
  return among.find((one) => one.device.device === place.device.device) ?? among[0];
}

/** Names, each with its colour before it. */
function swatches(rows: (readonly [string, string])[]): HTMLElement[] {
  return rows.map(([name, colour]) => {
    const swatch = element("span", "swatch");
    swatch.style.background = colour;
    return element("li", "", swatch, text.words(name));
  });
}
