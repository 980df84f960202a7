// What lies below the timeline: what is chosen, who holds the memory of a moment, the segments, the tables.

import { facts, type Names, stack, title } from "./describe";
import { choice, element } from "./element";
import { type By, Flame, type Weight } from "./flame";
import type { Scene } from "./picture";
import { Segments } from "./segments";
import type { Item } from "./stack";
import type { Place } from "./strips";
import * as tables from "./tables";
import * as text from "./text";

type Tab = "holders" | "segments" | "lines" | "iterations";

const TABS = [
  ["holders", "Who holds it"],
  ["segments", "Segments"],
  ["lines", "Lines"],
  ["iterations", "Iterations and roles"],
] as const;

export class Panels {
  readonly root = element("section", { class: "panels", attributes: { "aria-label": "the chosen moment" } });
  private readonly heading = element("h2");
  private readonly known = element("p", "known");
  private readonly chosen = element("div", "selected");
  private readonly content = element("div", "content");
  private readonly flame = new Flame();
  private readonly segments: Segments;
  private readonly tabs: HTMLElement;
  private tab: Tab = "holders";
  private by: By = "role";
  private weight: Weight = "moment";
  private place: Place | null = null;
  private scene: Scene | null = null;
  private bin = 0;

  constructor(
    private readonly names: Names,
    choose: (place: Place, item: Item) => void,
  ) {
    this.segments = new Segments((item) => {
      if (this.place) choose(this.place, item);
    });
    this.tabs = choice("what is shown", TABS, this.tab, (tab) => {
      this.tab = tab;
      this.draw();
    });
    this.root.append(this.heading, this.known, this.chosen, this.tabs, this.content);
    addEventListener("theme", () => this.draw());
  }

  /** Shows a moment, and what was chosen in it. */
  show(place: Place | null, scene: Scene | null, item: Item | null, bin: number): void {
    this.place = place;
    this.scene = scene;
    this.bin = bin;
    this.showItem(item);
    this.draw();
  }

  /** Turns to another tab. */
  open(tab: Tab): void {
    this.tabs.querySelector<HTMLElement>(`[data-value="${tab}"]`)?.click();
  }

  /** The same moment in another scene; a base has no other. */
  rescene(scene: Scene | null): void {
    if (this.place?.isBase) return;
    this.scene = scene;
    this.draw();
  }

  /** Says everything of an item. */
  showItem(item: Item | null): void {
    const { place, scene } = this;
    this.chosen.replaceChildren();
    if (item === null || !place || !scene) return;
    this.chosen.append(
      element("h3", "", title(place.picture, scene, item, this.bin, this.names)),
      ...facts(place.picture, scene, item, this.names).map((line) => element("p", "", line)),
      stack(place.picture, scene, item, 60),
    );
  }

  private draw(): void {
    const { place, scene, bin } = this;
    if (!place || !scene) return;
    const { picture } = place;
    const turn = picture.turnAt(bin);
    const phase = picture.phaseAt(bin);
    const outside = picture.packed.turns.length > 0 ? "outside of the iterations" : "";
    const where = [
      turn >= 0 ? `iteration ${turn + 1}` : outside,
      phase >= 0 ? text.words(this.names.phases[phase]) : "",
    ].filter(Boolean);
    const without = scene === picture.scene ? "" : " without the finding";
    const around = where.length > 0 ? ` (${where.join(", ")})` : "";
    const moment = `event ${text.count(picture.shown[bin])}${bin === picture.peakBin ? ", the peak" : ""}`;
    const of = place.isBase ? "The base: " : "";
    this.heading.textContent = `${of}${text.bytes(scene.total[bin])} in use${without} at ${moment}${around}`;
    const known = tables.familiars(picture, scene, bin, this.names);
    this.known.textContent = known === "" ? "" : `Known by name: ${known}.`;
    this.content.replaceChildren(...this.tabbed(place, scene));
    // Without a finding the allocator would have placed everything elsewhere: what it held is shown as recorded.
    if (this.tab === "segments") this.segments.show(picture, picture.scene, bin, this.names);
  }

  private tabbed({ picture }: Place, scene: Scene): Node[] {
    switch (this.tab) {
      case "holders":
        this.flame.show(picture, scene, this.by, this.weight, this.bin, this.names);
        return [this.holders(), this.flame.root];
      case "segments":
        return [this.segments.root];
      case "lines":
        return [tables.sites(picture), tables.largest(picture, scene, this.bin, this.names)];
      case "iterations":
        return [tables.roles(picture, scene, this.bin, this.names), tables.iterations(picture)];
    }
  }

  private holders(): HTMLElement {
    const bys = [
      ["role", "By role and line"],
      ["calls", "By calls"],
    ] as const;
    const weights = [
      ["moment", "Bytes at the moment"],
      ["lifetime", "Bytes x lifetime, all of it"],
    ] as const;
    return element(
      "div",
      "controls",
      choice("by", bys, this.by, (by) => {
        this.by = by;
        this.draw();
      }),
      choice("weighed by", weights, this.weight, (weight) => {
        this.weight = weight;
        this.draw();
      }),
    );
  }
}
