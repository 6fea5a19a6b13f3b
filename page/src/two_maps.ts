// Two runs' maps of one text: how far they are apart, and what is said of it.
import { reword } from "./nouns.ts";
import { tvd } from "./prediction.ts";

/** What a run read of a text; it has no tokens where it read the text in several windows. */
export interface Reading {
  predicted: string;
  probability: number | null;
  label: string | null;
  tokens?: string[];
  weights?: (number | null)[];
}

/** A text, and what each run read of it, in the order of the runs; null where a run did not audit it. */
export interface ComparedText {
  id: number;
  name: string;
  query: string;
  runs: (Reading | null)[];
}

export interface Comparison {
  runs: string[];
  texts: ComparedText[];
}

const CHANGES = 5; // words of a text whose weights change most

/** The weights of a map as shares of their sum; null where they are no map. */
export function shares(reading: Reading | null | undefined): number[] | null {
  const weights: number[] = [];
  for (const weight of reading?.weights ?? []) {
    if (weight === null || weight < 0) return null;
    weights.push(weight);
  }
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return sum > 0 ? weights.map((weight) => weight / sum) : null;
}

/** The share of the weight that lies on other words (total variation distance); null where it is not compared. */
export function distance(first: Reading | null | undefined, second: Reading | null | undefined): number | null {
  const [p, q] = [shares(first), shares(second)];
  if (p === null || q === null || p.length < 2 || !sameTokens(first, second)) return null;
  return tvd(p, q);
}

/** One sentence on how two maps of a text differ, or why they are not compared. */
export function change(first: Reading | null | undefined, second: Reading | null | undefined): string {
  if (!first || !second) return reword("One of the runs did not audit this text.");
  if (first.tokens === undefined || second.tokens === undefined) return "Not compared: read in several windows.";
  if (!sameTokens(first, second)) return reword("Not compared: the runs read other tokens of this text.");
  const [p, q, apart] = [shares(first), shares(second), distance(first, second)];
  if (p === null || q === null) return "Not compared: a weight is undefined or negative, or all are 0.";
  if (apart === null) return reword("Not compared: the only token has all the weight.");
  const difference = (i: number): number => Math.abs((p[i] ?? 0) - (q[i] ?? 0));
  const most = [...p.keys()].sort((i, j) => difference(j) - difference(i)).slice(0, CHANGES);
  const words = most.map((i) => `“${first.tokens?.[i] ?? ""}” ${rounded(p[i])} and ${rounded(q[i])}`).join("; ");
  const share = `${(100 * apart).toFixed(0)} % of the weight lies on other words. Words that change most:`;
  return `${reword(share)} ${words}.`;
}

/** The words of a text, as the first run that has them read them. */
export function wordsOf(text: ComparedText): string {
  return (text.runs.find((reading) => reading?.tokens)?.tokens ?? []).join(" ");
}

/** Three significant digits. */
export function rounded(value: number | null | undefined): string {
  return value === null || value === undefined ? "undefined" : String(Number(value.toPrecision(3)));
}

function sameTokens(first: Reading | null | undefined, second: Reading | null | undefined): boolean {
  const [a, b] = [first?.tokens ?? [], second?.tokens ?? []];
  return a.length === b.length && a.every((token, i) => token.toLowerCase() === b[i]?.toLowerCase());
}
