// What mouse and keyboard do to a timeline.

/** What can be asked of it; places are pixels of its canvas. */
export interface Moved {
  pan(pixels: number): void;
  zoom(factor: number, x?: number): void;
  frame(from: number, until: number): void;
  point(x: number, y: number): void;
  leave(): void;
  choose(x: number, y: number): void;
  step(bins: number): void;
  goToPeak(): void;
  reset(): void;
}

/** Pixels from which on a press is a drag. */
const DRAG = 4;
/** How much a key zooms. */
const KEY_ZOOM = 1.5;

export function gestures(canvas: HTMLCanvasElement, moved: Moved): void {
  pointer(canvas, moved);
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        moved.pan(event.deltaX || event.deltaY);
      } else {
        moved.zoom(1.0015 ** event.deltaY, event.offsetX);
      }
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    if (follow(event, moved, canvas.clientWidth)) event.preventDefault();
  });
}

/** Does what a key says; whether it says something. */
export function follow(event: KeyboardEvent, moved: Moved, width: number): boolean {
  const act = event.ctrlKey || event.metaKey || event.altKey ? null : key(event, moved, width);
  act?.();
  return act !== null;
}

/** Keys that scroll the page, wherever no timeline has the focus. */
export const SCROLLS = ["ArrowUp", "ArrowDown", "Home"];

function pointer(canvas: HTMLCanvasElement, moved: Moved): void {
  let pressed: { x: number; last: number; frames: boolean; drags: boolean } | null = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pressed = { x: event.offsetX, last: event.offsetX, frames: event.shiftKey, drags: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!pressed) return moved.point(event.offsetX, event.offsetY);
    if (!pressed.drags && Math.abs(event.offsetX - pressed.x) >= DRAG) {
      pressed.drags = true;
      moved.leave();
    }
    if (pressed.drags && !pressed.frames) moved.pan(pressed.last - event.offsetX);
    pressed.last = event.offsetX;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!pressed) return;
    if (!pressed.drags) moved.choose(event.offsetX, event.offsetY);
    else if (pressed.frames) moved.frame(pressed.x, event.offsetX);
    pressed = null;
  });
  canvas.addEventListener("pointercancel", () => {
    pressed = null;
  });
  canvas.addEventListener("pointerleave", () => {
    if (!pressed) moved.leave();
  });
}

function key(event: KeyboardEvent, moved: Moved, width: number): (() => void) | null {
  switch (event.key) {
    case "ArrowLeft":
      return () => (event.shiftKey ? moved.step(-1) : moved.pan(-width / 10));
    case "ArrowRight":
      return () => (event.shiftKey ? moved.step(1) : moved.pan(width / 10));
    case "+":
    case "=":
    case "ArrowUp":
      return () => moved.zoom(1 / KEY_ZOOM);
    case "-":
    case "ArrowDown":
      return () => moved.zoom(KEY_ZOOM);
    case "0":
    case "Home":
      return () => moved.reset();
    case "p":
      return () => moved.goToPeak();
    default:
      return null;
  }
}
