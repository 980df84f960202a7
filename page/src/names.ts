// What recordings and devices are called among others: by the part of a name that tells it from theirs.

import type { Device, Recording } from "./document";

const several = (recording: Recording) => recording.devices.length > 1;

/** A device's whole name. */
export function fullName(recording: Recording, device: Device): string {
  return several(recording) ? `${recording.name}, device ${device.device}` : recording.name;
}

/** Short names of devices: a strip has room for little of a path, and paths mostly differ in little. */
export class DeviceNames {
  private readonly labels = new Map<Recording, string>();

  constructor(private readonly recordings: Recording[]) {
    const labels = distinct(recordings.map((one) => one.name));
    // The same rank may be there at several moments, or of several jobs.
    const ranks = new Map<number | null, number>();
    for (const { rank } of recordings) ranks.set(rank, (ranks.get(rank) ?? 0) + 1);
    recordings.forEach((one, at) => {
      const isKnown = one.rank !== null && ranks.get(one.rank) === 1;
      this.labels.set(one, isKnown ? `rank ${one.rank}` : labels[at]);
    });
  }

  of(recording: Recording, device: Device): string {
    const label = this.labels.get(recording) ?? recording.name;
    if (!several(recording)) return label;
    return this.recordings.length === 1 ? `device ${device.device}` : `${label}, device ${device.device}`;
  }
}

/** Folders that are looked at: no path has as many, and without paths there is an end all the same. */
const MOST_FOLDERS = 100;

/** Paths without the folders at their beginning and the names at their end that all have in common. */
function distinct(paths: string[]): string[] {
  const split = paths.map((path) => path.split(/[/\\]/));
  // Something is left of each.
  const most = split.reduce((least, parts) => Math.min(least, parts.length), MOST_FOLDERS) - 1;
  const agree = (at: number) => split.every((parts) => parts.at(at) === split[0].at(at));
  let before = 0;
  while (before < most && agree(before)) before++;
  let behind = 0;
  while (before + behind < most && agree(-1 - behind)) behind++;
  return split.map((parts) => parts.slice(before, parts.length - behind).join("/"));
}
