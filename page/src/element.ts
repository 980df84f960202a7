// The one way in which elements are made: text is always text.

type Child = Node | string | null | false;

interface Options {
  class?: string;
  title?: string;
  id?: string;
  /** ARIA and data attributes, and what else is plain text. */
  attributes?: Record<string, string>;
}

/** An element with its children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  options: Options | string = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  const given = typeof options === "string" ? { class: options } : options;
  if (given.class) made.className = given.class;
  if (given.title) made.title = given.title;
  if (given.id) made.id = given.id;
  for (const [key, value] of Object.entries(given.attributes ?? {})) made.setAttribute(key, value);
  for (const child of children) if (child !== null && child !== false) made.append(child);
  return made;
}

/** A button that does something. */
export function button(label: string, act: () => void, options: Options | string = {}): HTMLButtonElement {
  const made = element("button", options, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** Buttons of which one is pressed: a choice. */
export function choice<T extends string>(
  name: string,
  options: readonly (readonly [T, string])[],
  chosen: T,
  choose: (value: T) => void,
): HTMLElement {
  const group = element("div", { class: "choice", attributes: { role: "group", "aria-label": name } });
  const buttons = options.map(([value, label]) => {
    const one = button(label, () => press(value), { attributes: { "data-value": value } });
    group.append(one);
    return one;
  });
  const show = (value: T) => {
    for (const one of buttons) one.setAttribute("aria-pressed", String(one.dataset.value === value));
  };
  const press = (value: T) => {
    show(value);
    choose(value);
  };
  show(chosen);
  return group;
}

/** A table from rows of text; numbers are set to the right. */
export function table(
  caption: string,
  head: string[],
  rows: (string | Node)[][],
  numbers: number[],
): HTMLElement {
  const cells = (row: (string | Node)[], kind: "th" | "td") =>
    row.map((cell, at) => element(kind, numbers.includes(at) ? "number" : "", cell));
  return element(
    "table",
    "",
    element("caption", "", caption),
    element("thead", "", element("tr", "", ...cells(head, "th"))),
    element("tbody", "", ...rows.map((row) => element("tr", "", ...cells(row, "td")))),
  );
}
