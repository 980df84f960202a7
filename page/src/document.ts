// The document that memlint puts into the page: its types, and how it is unpacked. They mirror src/report/html.

export interface PageDocument {
  format: string;
  version: string;
  headline: string;
  verdict: string;
  roles: string[];
  /** What people know allocations by. */
  familiars: string[];
  phases: string[];
  findings: Finding[];
  notices: { severity: Severity; message: string; help: string }[];
  silences: [string, string[]][];
  recordings: Recording[];
  groups: Alike[];
  base: Recording[];
  differences: string[];
}

export type Severity = "info" | "warning" | "error";

export interface Finding {
  rule: string;
  group: string;
  severity: Severity;
  level: string;
  open: boolean;
  confidence: string;
  message: string;
  label: string;
  place: string;
  source: Excerpt | null;
  evidence: string;
  impact: string;
  saves: number | null;
  help: string[];
  standing: string;
  places: string;
  related: { place: string; message: string }[];
  stack: { place: string; user: boolean }[];
  explained: string;
  fingerprint: string;
  recording: number;
  device: number | null;
}

export interface Excerpt {
  first: number;
  lines: string[];
  number: number;
  from: number;
  until: number;
}

export interface Recording {
  name: string;
  rank: number | null;
  gaps: string[];
  devices: Device[];
}

/** Recordings that are alike and not drawn in full; members are positions of recordings and of devices in them. */
export interface Alike {
  label: string;
  peaks: string | null;
  rest: boolean;
  members: [number, number][];
}

export interface Device {
  device: number;
  summary: string;
  composition: string;
  kind: string | null;
  events: number;
  allocations: number;
  iterations: number;
  peak_requested: number | null;
  peak_allocated: number | null;
  peak_reserved: number | null;
  picture: PackedPicture | null;
  /** Of one that is not drawn in full the curve, in parts of a thousand of its peak. */
  curve?: number[];
}

/** Kind, name, file, line, whether it is the user's own; name and file are positions among the strings. */
export type PackedLabel = [
  "all" | "line" | "operator" | "engine" | "no-stack" | "older" | "merged",
  number,
  number,
  number,
  boolean,
];

export interface PackedPicture {
  events: number;
  width: number;
  base: string;
  peak: number;
  strings: string[];
  /** `sites`: for each node the node of the line that its lifetimes count for; 0 where there are none. */
  tree: { callers: number[]; called: number[]; sites: number[]; labels: PackedLabel[] };
  shown: number[];
  reserved: number[];
  times: number[];
  each: {
    start: number[];
    bins: number[];
    bytes: number[];
    slack: number[];
    address: number[];
    role: number[];
    /** -1 where there is no name that is sure. */
    familiar: number[];
    phase: number[];
    stream: number[];
    node: number[];
  };
  clouds: { count: number; role: number; familiar: number; node: number; bins: number[]; by: number[] }[];
  guilty: {
    finding: number;
    each: number[];
    clouds: number[];
    /** Where to look, of what is about no lifetime. */
    moment: number | null;
    without: {
      peak: number;
      each: number[];
      ends: number[];
      clouds: [number, number[], number[]][];
    } | null;
  }[];
  phases: { bins: number[]; phase: number[] };
  /** First moment, last moment, complete, peak, resident. */
  turns: [number, number, boolean, number, number][];
  failures: [number, number][];
  /** Name, first moment, last moment, depth. */
  annotations: [number, number, number, number][];
  pieces: {
    address: number[];
    bytes: number[];
    start: number[];
    end: number[];
    stream: number[];
    expandable: boolean[];
    private: boolean[];
  };
  sites: { place: string; at_peak: number; count_at_peak: number; count: number; growth: number }[];
}

const FORMAT = "memlint-page/1";

/** Unpacks the document: base64, gzip, JSON. */
export async function unpack(text: string): Promise<PageDocument> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const document = JSON.parse(await new Response(plain).text()) as PageDocument;
  if (document.format !== FORMAT) throw new Error(`the document is ${document.format}, not ${FORMAT}`);
  return document;
}
