// The findings, a card each. Choosing one lights up what it is about; a switch shows the timeline without it.

import type { Excerpt, Finding, PageDocument, Recording } from "./document";
import { button, element } from "./element";
import { DeviceNames } from "./names";
import { count } from "./text";

/** What the picture that is shown has of a finding. */
export interface Drawn {
  /** How many lifetimes it is about. */
  about: number;
  /** Which moment shows it, where it is about none. */
  where: string;
  mendable: boolean;
}

export interface CardListener {
  /** A finding is chosen, or none; `without` says whether what mending it does is shown. */
  choose(finding: number | null, without: boolean): void;
  /** What is known of a finding in the picture that is shown. */
  drawn(finding: number): Drawn;
}

const SIGNS = { error: "✖", warning: "▲", info: "●" } as const;

export class Cards {
  readonly root = element("section", { class: "cards", attributes: { "aria-label": "findings" } });
  private readonly cards: HTMLElement[] = [];
  private readonly switches: HTMLInputElement[] = [];
  private chosen: number | null = null;

  constructor(
    document: PageDocument,
    private readonly listener: CardListener,
  ) {
    this.root.append(element("h2", "", "Findings"));
    const where = whereabouts(document.recordings);
    document.findings.forEach((finding, at) => {
      const card = this.card(finding, at, where(finding));
      this.cards.push(card);
      this.root.append(card);
    });
    if (document.findings.length === 0) this.root.append(element("p", "empty", "Nothing was found."));
    for (const one of document.notices) {
      this.root.append(
        element(
          "article",
          `card ${one.severity}`,
          element("p", "message", `${one.severity}: ${one.message}`),
          one.help !== "" && element("p", "", one.help),
        ),
      );
    }
    if (document.silences.length > 0) this.root.append(silences(document.silences));
  }

  /** Chooses a finding, or none. */
  choose(finding: number | null, without = false): void {
    this.chosen = finding;
    this.cards.forEach((card, at) => {
      const is = at === finding;
      card.classList.toggle("chosen", is);
      card.querySelector(".head")?.setAttribute("aria-expanded", String(is));
      this.switches[at].checked = is && without;
    });
    this.listener.choose(finding, without);
  }

  /** The next finding, or the one before. */
  step(by: number): void {
    const count = this.cards.length;
    if (count === 0) return;
    const from = this.chosen ?? (by > 0 ? -1 : 0);
    const next = (from + by + count) % count;
    this.choose(next);
    this.cards[next].scrollIntoView({ block: "nearest" });
  }

  /** Says of each card what the picture that is shown has of it. */
  refresh(): void {
    this.cards.forEach((card, at) => {
      const { about, where, mendable } = this.listener.drawn(at);
      const flip = this.switches[at];
      flip.disabled = !mendable;
      // What other lifetimes do not mend has no timeline without it.
      if (flip.parentElement) flip.parentElement.hidden = !mendable;
      const hint = card.querySelector(".lights");
      if (!hint) return;
      if (about > 0) hint.textContent = `lights up ${count(about)} lifetime${about === 1 ? "" : "s"}`;
      else if (where !== "") hint.textContent = `is about no one lifetime; goes to ${where}`;
      else hint.textContent = "is about another timeline";
    });
  }

  private card(finding: Finding, at: number, where: string): HTMLElement {
    const head = button("", () => this.choose(this.chosen === at ? null : at), {
      class: "head",
      attributes: { "aria-expanded": "false" },
    });
    head.append(
      element("span", "sign", SIGNS[finding.severity]),
      element("span", "message", `${finding.level}: ${finding.message}`),
      element("span", "rule", where === "" ? finding.rule : `${finding.rule}, ${where}`),
    );
    const flip = element("input", { attributes: { type: "checkbox" } });
    flip.addEventListener("change", () => this.choose(at, flip.checked));
    this.switches.push(flip);
    const body = element(
      "div",
      "body",
      element("p", "place", finding.place),
      finding.source && excerpt(finding.source, finding.label),
      !finding.source && finding.label !== "" && element("p", "", finding.label),
      element("p", "lights", ""),
      element("label", "without", flip, " show the timeline without it"),
      facts(finding),
      explained(finding),
    );
    return element("article", `card ${finding.severity}${finding.open ? "" : " closed"}`, head, body);
  }
}

/** Names the timeline of a finding, where there are several. */
function whereabouts(recordings: Recording[]): (finding: Finding) => string {
  const names = new DeviceNames(recordings);
  const count = recordings.reduce((sum, one) => sum + one.devices.length, 0);
  return ({ recording, device, places }) => {
    const of = recordings[recording];
    const at = of?.devices.find((one) => one.device === device) ?? of?.devices[0];
    if (!at || count < 2) return "";
    return `${places === "" ? "in" : "worst in"} ${names.of(of, at)}`;
  };
}

function facts(finding: Finding): HTMLElement {
  const list = element("dl");
  const add = (name: string, what: string | Node | false) => {
    if (what !== "" && what !== false) list.append(element("dt", "", name), element("dd", "", what));
  };
  add("evidence", finding.evidence);
  add("impact", finding.impact);
  add("help", finding.help.length > 0 && element("pre", "help", finding.help.join("\n")));
  add("seen on", finding.places);
  add("confidence", finding.confidence);
  add("standing", finding.standing);
  for (const one of finding.related) add("also", `${one.place}: ${one.message}`);
  return list;
}

function explained(finding: Finding): Node {
  const more = element("div");
  if (finding.stack.length > 0) {
    const frames = finding.stack.map((frame) => element("li", frame.user ? "own" : "", frame.place));
    more.append(element("details", "", element("summary", "", "stack"), element("ol", "stack", ...frames)));
  }
  if (finding.explained !== "") {
    const text = element("pre", "explained", finding.explained);
    more.append(element("details", "", element("summary", "", `explain ${finding.rule}`), text));
  }
  return more;
}

/** Lines of source; characters are counted as Python does. */
function excerpt(source: Excerpt, label: string): HTMLElement {
  const lines = source.lines.map((line, at) => {
    const number = source.first + at;
    const row = element("div", number === source.number ? "line meant" : "line");
    row.append(element("span", "gutter", String(number)));
    if (number !== source.number) row.append(element("code", "", line));
    else {
      const characters = Array.from(line);
      const part = (from: number, until?: number) => characters.slice(from, until).join("");
      row.append(
        element(
          "code",
          "",
          part(0, source.from),
          element("mark", "", part(source.from, source.until)),
          part(source.until),
        ),
      );
    }
    return row;
  });
  const place = source.number - source.first + 1;
  if (label !== "") lines.splice(place, 0, element("div", "label", label));
  return element("div", "source", ...lines);
}

function silences(all: [string, string[]][]): HTMLElement {
  const list = element("ul");
  for (const [reason, rules] of all) list.append(element("li", "", `${reason}: ${rules.join(", ")}`));
  return element("details", "silences", element("summary", "", "What was not judged"), list);
}
