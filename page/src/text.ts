// Numbers and pieces of text for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `97.5 MiB`, as memlint writes it everywhere; with more digits where neighbours have to be told apart. */
export function bytes(count: number, digits = 1): string {
  const sign = count < 0 ? "-" : "";
  let value = Math.abs(count);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const shown = unit === 0 ? String(value) : value.toFixed(digits).replace(/\.?0+$/, "");
  return `${sign}${shown} ${UNITS[unit]}`;
}

/** `1.3 s`, `12.4 ms`, `85 us`. */
export function duration(micros: number): string {
  if (micros >= 60e6) return `${Math.floor(micros / 60e6)} min ${Math.round((micros % 60e6) / 1e6)} s`;
  if (micros >= 1e6) return `${(micros / 1e6).toFixed(2)} s`;
  if (micros >= 1e3) return `${(micros / 1e3).toFixed(1)} ms`;
  return `${Math.round(micros)} us`;
}

/** `12,345`. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** `12 %`. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return "0 %";
  const share = (100 * part) / whole;
  return `${share > 0 && share < 1 ? "<1" : Math.round(share)} %`;
}

/** A path's last two components. */
export function short(path: string): string {
  const parts = path.split(/[/\\]/);
  return parts.length > 2 ? `${parts.slice(-2).join("/")}` : path;
}

/** Words with blanks: `optimizer-state` becomes `optimizer state`. */
export function words(name: string): string {
  return name.replaceAll("-", " ");
}
