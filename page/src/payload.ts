// The texts that the page holds, as heedmap/report/text_data.py packs them: an index and blocks of maps.

export const LEVELS = ["for", "mixed", "against", "cannot tell", "not asked"] as const;
export type Level = (typeof LEVELS)[number];

export interface MapHead {
  name: string;
  kind: "attention" | "importance" | "marks";
  signed: boolean;
}

/** A number of each text; null where there is none. */
export interface Fact {
  name: string;
  meaning: string;
  values: (number | null)[];
}

/** Columns, one value per text, and what is said of all texts. */
export interface Index {
  classes: string[];
  /** What the model's number counts, of a model that predicts no class. */
  unit?: string;
  block: number;
  /** Of all audited texts, on this page or not. */
  total: number;
  maps: MapHead[];
  key: string[];
  name: string[];
  tokens: string[][];
  label: (number | null)[];
  predicted: number[];
  expected: (number | null)[];
  level: Level[] | null;
  confidence: number[];
  query?: string[][];
  candidates?: number[];
  /** What the classes are for each text, where that is another word for each: the two of which one is hidden. */
  choices?: string[][];
  facts: Fact[];
  /** The tokens of the maps that have others than the text, by the map's number. */
  own: Record<string, (string[] | null)[]>;
  examples: { row: number; title: string; reason: string }[];
  whatIf: WhatIfHead;
  /** The places of the fewest words whose erasure changes each answer; whether no fewer do is known if `exact`. */
  smallest: { exact: boolean; sets: (number[] | null)[] } | null;
}

/** Where `bias` is empty the page cannot predict: why, and what the audit tried on each text. */
export interface WhatIfHead {
  bias: number[];
  adversary: boolean;
  reason: string;
  tried: { name: string; tvd: (number | null)[]; changed: (number | null)[] }[];
}

/** One map of one text; `values` are null where it is not defined. */
export interface TextMap extends MapHead {
  tokens: string[];
  largest: number;
  values: Float64Array | null;
}

const STEPS = 127;

/** Decode base64 and decompress it. */
export async function unpack(packed: string): Promise<ArrayBuffer> {
  const binary = atob(packed);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** Read the index. */
export async function readIndex(packed: string): Promise<Index> {
  return JSON.parse(new TextDecoder().decode(await unpack(packed))) as Index;
}

/** The name of a class; of a text that has a word for each class, that word. */
export function classOf(index: Index, row: number, number: number): string | null {
  return index.choices?.[row]?.[number] ?? index.classes[number] ?? null;
}

/** The tokens of a map of a text: the text's, if it has none of its own. */
export function tokensOf(index: Index, map: number, row: number): string[] {
  return index.own[map]?.[row] ?? index.tokens[row] ?? [];
}

/** Read all maps of the texts of one block, of which the first has number `first`: one list per text. */
export function readBlock(index: Index, first: number, content: ArrayBuffer): TextMap[][] {
  const count = Math.min(index.block, index.tokens.length - first);
  const view = new DataView(content);
  const texts = Array.from({ length: count }, (): TextMap[] => []);
  let at = 4 * count * index.maps.length;
  for (const [m, head] of index.maps.entries()) {
    for (const [i, maps] of texts.entries()) {
      const tokens = tokensOf(index, m, first + i);
      const largest = view.getFloat32(4 * (m * count + i), true);
      if (Number.isNaN(largest)) {
        maps.push({ ...head, tokens, largest, values: null });
        continue;
      }
      const steps = new Int8Array(content, at, tokens.length);
      maps.push({ ...head, tokens, largest, values: Float64Array.from(steps, (step) => (step * largest) / STEPS) });
      at += tokens.length;
    }
  }
  return texts;
}
