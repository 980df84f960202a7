// What stands around the stack: iterations, phases, annotations, the line of reserved bytes, marks, scales.

import type { Axis, Columns } from "./axis";
import { phaseColour } from "./palette";
import { lastAtMost } from "./picture";
import type { Shown } from "./shown";
import * as text from "./text";
import type { Theme } from "./theme";

/** Where things are drawn: lengths are pixels of the device. */
export interface Frame {
  context: CanvasRenderingContext2D;
  theme: Theme;
  ratio: number;
  columns: Columns;
  axis: Axis;
  scale: number;
  shown: Shown;
  left: number;
  top: number;
  width: number;
  height: number;
  unit: number;
  rows: { turns: number; phases: number; annotations: number; depths: number };
  /** Where labels of marks stand already: left, top, right, bottom. */
  taken: [number, number, number, number][];
}

/** Which numbers of many are written. */
const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

const font = (frame: Frame, size = 11) => `${size * frame.ratio}px system-ui, sans-serif`;

/** The column at which a moment begins, not cut to the view. */
function columnOf(frame: Frame, moment: number): number {
  const { axis, scale, columns } = frame;
  const { picture } = axis;
  const place = axis.kind === "events" ? picture.positionOf(moment) : axis.placeOf(picture.binOf(moment));
  return place / scale - columns.first;
}

const within = (frame: Frame, column: number) => Math.max(0, Math.min(frame.width, column));

/** Bands of iterations, and the lines of bytes. */
export function drawBehind(frame: Frame): void {
  const { context, theme, left, top, width, height, unit, ratio } = frame;
  context.fillStyle = theme.plot;
  context.fillRect(left, top, width, height);
  const wide = turnWidth(frame) > 6 * ratio;
  eachTurn(frame, (turn, from, until) => {
    if (turn % 2 === 1 || !wide) return;
    context.fillStyle = theme.band;
    context.fillRect(left + from, top, until - from, height);
  });
  context.font = font(frame);
  context.textAlign = "right";
  context.textBaseline = "middle";
  const step = roundBytes((height * unit) / Math.max(2, height / ratio / 60));
  for (let bytes = 0; bytes / unit <= height; bytes += step) {
    const y = Math.round(top + height - bytes / unit) - 0.5;
    context.fillStyle = theme.grid;
    context.fillRect(left, y, width, 1);
    context.fillStyle = theme.faint;
    context.fillText(text.bytes(bytes, 2), left - 6 * ratio, y);
  }
}

/** The next power of two: what reads well in binary units. */
const roundBytes = (least: number) => 2 ** Math.ceil(Math.log2(Math.max(1, least)));

/** The line of reserved bytes, the moment, the peak, failures. */
export function drawUpon(frame: Frame, moment: number): void {
  const { context, theme, left, top, height, ratio, shown } = frame;
  const { picture } = shown;
  if (shown.reserved) line(frame, reservedIn(frame), theme.reserved, [4 * ratio, 3 * ratio]);
  if (shown.scene !== picture.scene) {
    const all = Array.from(frame.columns.bin, (bin) => picture.scene.total[bin]);
    line(frame, all, theme.faint, [2 * ratio, 2 * ratio]);
  }
  const peak = picture.scene.peak;
  summit(frame, columnOf(frame, picture.packed.peak), peak, `peak ${text.bytes(peak)}`);
  if (shown.scene !== picture.scene) {
    const { total } = shown.scene;
    let highest = 0;
    for (let bin = 1; bin < total.length; bin++) if (total[bin] > total[highest]) highest = bin;
    const what = `${text.bytes(shown.scene.peak)} without it`;
    summit(frame, columnOf(frame, picture.shown[highest]), total[highest], what);
  }
  // Behind the peak: of many failures only the first have room for their words.
  for (const [at, asked] of picture.packed.failures) {
    flag(frame, at, theme.error, `out of memory: ${text.bytes(asked)} asked for`);
  }
  const here = columnOf(frame, picture.shown[moment]);
  if (here >= 0 && here < frame.width) {
    context.fillStyle = theme.mark;
    context.fillRect(left + Math.round(here), top, Math.max(1, ratio), height);
  }
}

/** A mark above the highest place. */
function summit(frame: Frame, column: number, bytes: number, what: string): void {
  if (column < 0 || column >= frame.width) return;
  const { context, theme, left, top, height, unit, ratio } = frame;
  const y = top + height - bytes / unit;
  context.fillStyle = theme.mark;
  context.beginPath();
  context.moveTo(left + column, y - 2 * ratio);
  context.lineTo(left + column - 5 * ratio, y - 10 * ratio);
  context.lineTo(left + column + 5 * ratio, y - 10 * ratio);
  context.fill();
  label(frame, column, y - 7 * ratio, what);
}

/** The highest reserved bytes of each column. */
function reservedIn(frame: Frame): number[] {
  const { bin } = frame.columns;
  const { reserved } = frame.shown.picture;
  return Array.from(bin, (one, column) => {
    const next = column + 1 < bin.length ? Math.min(bin[column + 1], one + 4096) : one + 1;
    let most = reserved[one];
    for (let at = one + 1; at < next; at++) most = Math.max(most, reserved[at]);
    return most;
  });
}

function line(frame: Frame, values: number[], colour: string, dash: number[]): void {
  const { context, left, top, height, unit, ratio } = frame;
  context.beginPath();
  values.forEach((bytes, column) => {
    const y = top + height - bytes / unit;
    context.lineTo(left + column, y);
    context.lineTo(left + column + 1, y);
  });
  context.strokeStyle = colour;
  context.lineWidth = 1.25 * ratio;
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

function flag(frame: Frame, moment: number, colour: string, what: string): void {
  const column = columnOf(frame, moment);
  if (column < 0 || column >= frame.width) return;
  const { context, left, top, height, ratio } = frame;
  context.fillStyle = colour;
  context.fillRect(left + column, top, 1.5 * ratio, height);
  label(frame, column, top + 8 * ratio, what, colour);
}

/** The most labels above one another; of more failures the lines alone show. */
const ROWS = 5;

/** A text beside a column, on the side where there is room, and below what stands there already. */
function label(frame: Frame, column: number, y: number, what: string, colour = frame.theme.text): void {
  const { context, left, top, width, ratio, theme } = frame;
  context.font = `600 ${font(frame)}`;
  context.textBaseline = "middle";
  const length = context.measureText(what).width;
  const before = column + length + 14 * ratio > width;
  const x = Math.max(left + 3 * ratio, left + column + (before ? -length - 10 * ratio : 10 * ratio));
  let middle = Math.max(y, top + 7 * ratio);
  const box = (): Frame["taken"][number] => [
    x - 3 * ratio,
    middle - 8 * ratio,
    x + length + 3 * ratio,
    middle + 8 * ratio,
  ];
  for (let row = 0; frame.taken.some((one) => overlap(one, box())); row++) {
    if (row === ROWS) return;
    middle += 16 * ratio;
  }
  frame.taken.push(box());
  context.fillStyle = theme.plot;
  context.globalAlpha = 0.85;
  context.fillRect(x - 3 * ratio, middle - 8 * ratio, length + 6 * ratio, 16 * ratio);
  context.globalAlpha = 1;
  context.fillStyle = colour;
  context.textAlign = "left";
  context.fillText(what, x, middle);
}

function overlap(one: Frame["taken"][number], other: Frame["taken"][number]): boolean {
  return one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
}

/** Iterations, phases and annotations above; the horizontal scale below. */
export function drawAround(frame: Frame): void {
  drawTurns(frame);
  drawPhases(frame);
  drawAnnotations(frame);
  drawScale(frame);
}

function eachTurn(frame: Frame, visit: (turn: number, from: number, until: number) => void): void {
  frame.shown.picture.packed.turns.forEach(([start, end], turn) => {
    const from = columnOf(frame, start);
    const until = columnOf(frame, end);
    if (until > 0 && from < frame.width) visit(turn, within(frame, from), within(frame, until));
  });
}

/** The width of an iteration, in the mean. */
function turnWidth(frame: Frame): number {
  const { turns } = frame.shown.picture.packed;
  const last = turns.at(-1);
  return last ? (columnOf(frame, last[1]) - columnOf(frame, turns[0][0])) / turns.length : 0;
}

function drawTurns(frame: Frame): void {
  const { context, theme, left, ratio, rows } = frame;
  context.font = font(frame);
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = theme.faint;
  if (frame.shown.picture.packed.turns.length > 0)
    context.fillText("iteration", left - 6 * ratio, rows.turns / 2);
  context.textAlign = "center";
  // As many numbers as have room: every one, every second, fifth, tenth and so on.
  const width = turnWidth(frame);
  const every = STRIDES.find((stride) => stride * width > 26 * ratio) ?? 10_000;
  eachTurn(frame, (turn, from, until) => {
    if (width > 3 * ratio) {
      context.fillStyle = theme.grid;
      context.fillRect(left + from, 2 * ratio, 1, rows.turns - 2 * ratio);
    }
    if ((turn + 1) % every !== 0 && !(turn === 0 && every > 1)) return;
    context.fillStyle = theme.faint;
    context.fillText(String(turn + 1), left + (from + until) / 2, rows.turns / 2);
  });
}

function drawPhases(frame: Frame): void {
  const { context, theme, left, ratio, rows, columns, shown } = frame;
  const { picture } = shown;
  const height = rows.phases - 3 * ratio;
  context.font = font(frame);
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = theme.faint;
  context.fillText("phase", left - 6 * ratio, rows.turns + height / 2);
  let run = lastAtMost(picture.phaseBins, columns.low);
  let from = 0;
  for (let column = 0; column <= columns.bin.length; column++) {
    const bin = columns.bin[column];
    const next = picture.phaseBins[run + 1];
    if (column < columns.bin.length && (next === undefined || bin < next)) continue;
    context.fillStyle = phaseColour(shown.phases[picture.packed.phases.phase[run]] ?? "other");
    context.fillRect(left + from, rows.turns, column - from, height);
    from = column;
    while (picture.phaseBins[run + 1] <= bin) run++;
  }
}

function drawAnnotations(frame: Frame): void {
  const { context, theme, left, ratio, rows, shown } = frame;
  const { annotations, strings } = shown.picture.packed;
  if (rows.depths === 0) return;
  const height = rows.annotations - 2 * ratio;
  const top = rows.turns + rows.phases;
  context.font = font(frame, 10);
  context.textBaseline = "middle";
  context.textAlign = "left";
  const full = new Float64Array(rows.depths).fill(-1);
  for (const [name, start, end, depth] of annotations) {
    if (depth >= rows.depths) continue;
    const from = within(frame, columnOf(frame, start));
    const until = within(frame, columnOf(frame, end));
    // What begins in the same pixel as its neighbour ended is not drawn over it.
    if (until <= from || until <= full[depth] + 1) continue;
    full[depth] = until;
    const y = top + depth * rows.annotations;
    context.fillStyle = theme.grid;
    context.fillRect(left + from, y, Math.max(1, until - from - 1), height);
    if (until - from < 30 * ratio) continue;
    context.save();
    context.beginPath();
    context.rect(left + from, y, until - from - 3 * ratio, height);
    context.clip();
    context.fillStyle = theme.faint;
    context.fillText(strings[name], left + from + 3 * ratio, y + height / 2);
    context.restore();
  }
}

function drawScale(frame: Frame): void {
  const { context, theme, left, top, width, height, ratio, columns, axis } = frame;
  // Of bins the events are counted.
  const scale = axis.kind === "events" ? frame.scale * axis.picture.packed.width : frame.scale;
  const span = width * scale;
  const power = 10 ** Math.floor(Math.log10(Math.max(1e-9, span / 6)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => span / one <= 8) ?? span;
  context.font = font(frame);
  context.textAlign = "center";
  context.textBaseline = "top";
  for (let place = Math.ceil((columns.first * scale) / step) * step; ; place += step) {
    const column = place / scale - columns.first;
    if (column > width) break;
    context.fillStyle = theme.grid;
    context.fillRect(left + column, top + height, 1, 4 * ratio);
    context.fillStyle = theme.faint;
    context.fillText(name(axis, place, step), left + column, top + height + 6 * ratio);
  }
  context.textAlign = "right";
  const unit = { events: "event", time: "time", iterations: "iteration" }[axis.kind];
  context.fillText(unit, left - 12 * ratio, top + height + 6 * ratio);
}

function name(axis: Axis, place: number, step: number): string {
  if (axis.kind === "time") return text.duration(place);
  if (axis.kind === "events") return step < 1 ? "" : text.count(Math.round(place));
  return step < 1 ? place.toFixed(1) : String(place);
}
