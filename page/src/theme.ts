// Dark and light: as the system says, until somebody says otherwise.

export interface Theme {
  plot: string;
  text: string;
  faint: string;
  grid: string;
  band: string;
  reserved: string;
  error: string;
  mark: string;
}

const LIGHT: Theme = {
  plot: "#ffffff",
  text: "#16202b",
  faint: "#5a6673",
  grid: "#dfe4ea",
  band: "#f1f4f8",
  reserved: "#16202b",
  error: "#b3261e",
  mark: "#16202b",
};

const DARK: Theme = {
  plot: "#12171d",
  text: "#e8edf2",
  faint: "#98a4b1",
  grid: "#2a333d",
  band: "#1a2129",
  reserved: "#e8edf2",
  error: "#ff8a80",
  mark: "#e8edf2",
};

const system = matchMedia("(prefers-color-scheme: dark)");

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

export function theme(): Theme {
  return isDark() ? DARK : LIGHT;
}

/** Applies what the system says, now and whenever it changes; whoever draws hears of it as `theme`. */
export function follow(): void {
  const apply = () => {
    document.documentElement.dataset.theme = system.matches ? "dark" : "light";
    dispatchEvent(new Event("theme"));
  };
  system.addEventListener("change", apply);
  apply();
}

/** Changes it, and tells whoever draws. */
export function toggle(): void {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  dispatchEvent(new Event("theme"));
}
