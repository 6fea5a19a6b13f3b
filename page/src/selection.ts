// Which texts a state shows, and in which order.
import { rightness, type Column } from "./columns.ts";
import { LEVELS, type Index, type Level } from "./payload.ts";
import type { State } from "./state.ts";


/** The names of the texts in addresses: their keys, and of equal keys the later ones with a number. */
export function anchors(index: Index): string[] {
  const seen = new Set<string>();
  return index.key.map((key) => {
    let anchor = key;
    for (let i = 2; seen.has(anchor); i++) anchor = `${key}~${i}`;
    seen.add(anchor);
    return anchor;
  });
}

/** What is searched of a text: its words, name and query in lower case, with spaces and without. */
export interface Searched {
  words: string;
  joined: string;
}

export function searchable(index: Index): Searched[] {
  return index.tokens.map((tokens, row) => {
    const words = plain([...tokens, index.name[row], ...(index.query?.[row] ?? [])].join(" "));
    return { words, joined: words.replace(/\s+/g, "") };
  });
}

/** Whether a text has a term. One with punctuation, such as “it’s”, may be several tokens: it ' s. */
function has(text: Searched | undefined, term: string): boolean {
  if (text === undefined) return false;
  return text.words.includes(term) || (/[\p{P}\p{S}]/u.test(term) && text.joined.includes(term));
}

/** Lower case, with typewriter's apostrophes and quotes. */
function plain(text: string): string {
  return text.toLowerCase().replace(/[‘’]/g, "'").replace(/[“”]/g, '"');
}

/** The rows that a state shows, in its order; `brushed` are those in the brush of a figure, null if there is none. */
export function select(
  index: Index,
  all: readonly Column[],
  texts: readonly Searched[],
  state: State,
  brushed: ReadonlySet<number> | null = null,
): number[] {
  const terms = plain(state.search).split(/\s+/).filter(Boolean);
  const [shortest, longest] = bounds(state.shortest, state.longest);
  const [least, most] = bounds(state.least, state.most);
  const rows = index.tokens.flatMap((tokens, row) => {
    const confidence = index.confidence[row] ?? Number.NaN;
    const label = index.label[row] ?? null;
    const fits =
      (state.predicted === "" || index.classes[index.predicted[row] ?? -1] === state.predicted) &&
      (state.label === "" || (label !== null && index.classes[label] === state.label)) &&
      (state.right === "" || rightness(index, row) === state.right) &&
      (state.level === "" || index.level?.[row] === state.level) &&
      tokens.length >= shortest &&
      tokens.length <= longest &&
      confidence >= least &&
      confidence <= most &&
      (brushed === null || brushed.has(row)) &&
      terms.every((term) => has(texts[row], term));
    return fits ? [row] : [];
  });
  return sorted(rows, all, state.sort);
}

/** The rows in the order of a column; those without a value come last, whichever way it is sorted. */
export function sorted(rows: readonly number[], all: readonly Column[], sort: string): number[] {
  const id = sort.startsWith("-") ? sort.slice(1) : sort;
  const column = all.find((candidate) => candidate.id === id);
  if (column === undefined) return [...rows];
  const sign = sort.startsWith("-") ? -1 : 1;
  const values = new Map(rows.map((row) => [row, column.value(row)]));
  return [...rows].sort((a, b) => {
    const [x, y] = [values.get(a) ?? null, values.get(b) ?? null];
    if (x === null || y === null) return Number(x === null) - Number(y === null) || a - b;
    return sign * compared(column.id, x, y) || a - b;
  });
}

function compared(id: string, x: string | number, y: string | number): number {
  if (typeof x === "number" && typeof y === "number") return x - y;
  if (id === "level") return LEVELS.indexOf(x as Level) - LEVELS.indexOf(y as Level);
  return collator.compare(String(x), String(y));
}

const collator = new Intl.Collator("en", { numeric: true });

function bounds(low: string, high: string): [number, number] {
  return [bound(low, -Infinity), bound(high, Infinity)];
}

function bound(typed: string, otherwise: number): number {
  const value = Number(typed);
  return typed.trim() === "" || Number.isNaN(value) ? otherwise : value;
}
