// The page as a whole: its parts, and what choosing something in one does to the others.

import type { AxisKind } from "./axis";
import { Cards, type Drawn } from "./cards";
import { facts, type Names, stack, title } from "./describe";
import type { PageDocument } from "./document";
import { button, choice, element } from "./element";
import { type ColourBy, type Colouring, colouring, phaseColour } from "./palette";
import { Panels } from "./panels";
import type { Guilty, Scene } from "./picture";
import type { Item, Lit } from "./stack";
import { draw, outliersFirst, type Place, places, Strips } from "./strips";
import * as tables from "./tables";
import * as text from "./text";
import { toggle } from "./theme";
import { Timeline } from "./timeline";

const AXES = [
  ["events", "Events"],
  ["time", "Time"],
  ["iterations", "Iterations"],
] as const;
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
  private readonly timeline: Timeline;
  private readonly before: Timeline | null = null;
  private readonly overview = element("canvas", { attributes: { "aria-hidden": "true" } });
  private readonly window = element("div", "window");
  private readonly legend = element("ul", { class: "legend", attributes: { "aria-label": "colours" } });
  private readonly phases = element("ul", { class: "legend", attributes: { "aria-label": "phases" } });
  private readonly tip = element("div", { class: "tip", attributes: { role: "status" } });
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
    this.base = places(document.base);
    this.place = this.all[0] ?? null;
    this.axis = this.base.length > 0 ? "iterations" : "events";
    this.timeline = new Timeline(
      {
        point: (item, bin, x, y) => this.point(item, bin, x, y),
        choose: (item, bin) => this.panels.show(this.place, this.scene, item, bin),
        view: (from, until) => this.view(from, until),
      },
      this.base.length > 0 ? 300 : 420,
    );
    if (this.base.length > 0) {
      this.before = new Timeline({ point: () => {}, choose: () => {}, view: () => {} }, 240);
    }
    this.cards = new Cards(document, {
      choose: (finding, without) => this.light(finding, without),
      drawn: (finding) => this.drawn(finding),
    });
    this.panels = new Panels(this.names, (item) => {
      this.timeline.select(item);
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
    const severity = this.document.findings.find((one) => one.open)?.severity ?? "none";
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
      left.append(this.about, this.controls(), this.plot(), this.legend, this.phases);
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
      button("Whole", () => this.timeline.reset()),
      button("Peak", () => this.timeline.goToPeak()),
      element(
        "p",
        "keys",
        "wheel zooms, drag moves, shift+drag frames, a press chooses; keys: arrows, +, -, 0, p, n",
      ),
    );
  }

  private plot(): HTMLElement {
    const plot = element(
      "section",
      { class: "plot", attributes: { "aria-label": "timeline" } },
      this.timeline.canvas,
    );
    if (this.before) plot.append(element("p", "caption", "The base, to the same scale:"), this.before.canvas);
    else plot.append(this.whole());
    plot.append(this.tip);
    return plot;
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

  private view(from: number, until: number): void {
    this.before?.follow(this.timeline);
    this.window.style.left = `${100 * from}%`;
    this.window.style.width = `${100 * Math.min(1 - from, until - from)}%`;
    this.window.hidden = until - from > 0.999;
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
    this.timeline.goTo(bin);
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
    const base = this.base.find((one) => one.rank === place.rank) ?? this.base[0];
    const most = Math.max(picture.scene.peak, base?.picture.scene.peak ?? 0);
    const held = (of: Place) => of.picture.reserved.reduce((a, b) => Math.max(a, b), 0);
    const top = base && Math.max(most, this.reserved ? Math.max(held(place), held(base)) : 0);
    const common = {
      axis: this.axis,
      reserved: this.reserved,
      phases: this.names.phases,
      ...(top ? { top } : {}),
    };
    this.timeline.show({ picture, scene: this.scene, colours, lit: this.lit(), ...common });
    if (this.before && base) {
      const scene = base.picture.scene;
      const of = colouring(this.colourBy, base.picture, this.names.roles, this.names.phases);
      this.before.show({ picture: base.picture, scene, colours: of, lit: null, ...common });
    }
    this.label(place, colours);
    this.small();
  }

  /** What is drawn small. */
  private small(): void {
    if (!this.place) return;
    if (!this.before)
      draw(this.overview, this.place.picture, this.names, this.place.picture.scene.peak * 1.04, {
        axis: this.axis,
        height: 36,
      });
    this.strips?.show(this.place);
  }

  private label(place: Place, colours: Colouring): void {
    const { device, picture } = place;
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
    const used = new Set<number>(colours.ofCloud);
    for (const group of colours.ofLife) used.add(group);
    const rows = colours.names.map((name, at) => [name, colours.colours[at]] as const);
    this.legend.replaceChildren(...swatches(rows.filter((_, at) => used.has(at))));
    const phases = [...new Set(picture.packed.phases.phase)].sort((one, other) => one - other);
    const shown = phases.map((at) => [this.names.phases[at], phaseColour(this.names.phases[at])] as const);
    this.phases.replaceChildren(element("li", "", "phases:"), ...swatches(shown));
    const label = `Memory over ${this.axis}: ${device.summary}. ${device.composition}. The tables below say the same.`;
    this.timeline.canvas.setAttribute("aria-label", label);
    this.timeline.canvas.dataset.lives = String(picture.lives);
  }

  private point(item: Item | null, bin: number, x: number, y: number): void {
    const { place, scene, tip } = this;
    tip.hidden = item === null;
    if (item === null || !place || !scene) return;
    const { picture } = place;
    tip.replaceChildren(
      element("strong", "", title(picture, scene, item, bin, this.names)),
      ...facts(picture, scene, item, this.names).map((line) => element("p", "", line)),
      stack(picture, scene, item, 8),
    );
    const width = this.timeline.canvas.clientWidth;
    tip.style.left = x > width / 2 ? "" : `${x + 16}px`;
    tip.style.right = x > width / 2 ? `${width - x + 16}px` : "";
    tip.style.top = `${Math.max(0, Math.min(y, 240))}px`;
  }

  private key(event: KeyboardEvent): void {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n") this.cards.step(1);
    else if (event.key === "N") this.cards.step(-1);
    else if (event.key === "Escape") this.cards.choose(null);
  }
}

/** Names, each with its colour before it. */
function swatches(rows: (readonly [string, string])[]): HTMLElement[] {
  return rows.map(([name, colour]) => {
    const swatch = element("span", "swatch");
    swatch.style.background = colour;
    return element("li", "", swatch, text.words(name));
  });
}
