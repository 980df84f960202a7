// What a timeline shows.

import type { AxisKind } from "./axis";
import type { Colouring } from "./palette";
import type { Picture, Scene } from "./picture";
import type { Lit } from "./stack";

/** What the timeline shows. */
export interface Shown {
  picture: Picture;
  scene: Scene;
  colours: Colouring;
  lit: Lit | null;
  axis: AxisKind;
  /** Whether the line of reserved bytes is drawn. */
  reserved: boolean;
  phases: string[];
  /** The bytes at the upper edge, where another timeline gives them. */
  top?: number;
  /** How far the axis reaches, where another timeline's reaches farther than its own. */
  length?: number;
}
