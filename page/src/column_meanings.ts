// What the columns of the table mean, as a list that opens on a click: a title alone is no help for fingers and keys.
import type { Column } from "./columns.ts";
import { chip, element, visible } from "./elements.ts";
import { reword } from "./nouns.ts";
import type { Level } from "./payload.ts";

const LEVELS: readonly (readonly [Level, string])[] = [
  ["for", "Without the map's first words half of the lead is gone, and with the highlighted words alone half stays."],
  ["mixed", "One of the two holds."],
  ["against", "Neither holds, though some third of the words takes half of the lead."],
  ["cannot tell", "No third of the words takes half of the lead."],
  ["not asked", "The text was not read again without its words: it was not drawn, or has fewer than three."],
];

/** What the marks of the texts' levels mean, in a line above the table. */
export function levelMarks(): HTMLElement {
  return element(
    "p",
    { class: "small" },
    reword("Level of a text: does the answer need the highlighted words, and do they suffice? "),
    chip("for"), " both; ", chip("mixed"), " one of the two; ", chip("against"), " neither; ",
    chip("cannot tell"), reword(" no few words decide it; "),
    chip("not asked"), reword(" the text was not read again without its words."),
  );
}

/** A closed list of all columns, and of the levels. */
export function columnMeanings(columns: readonly Column[]): HTMLElement {
  const terms = columns.flatMap((column) => [
    element("dt", {}, visible(column.title)),
    element("dd", {}, visible(column.meaning), ...(column.id === "level" ? [levels()] : [])),
  ]);
  return element(
    "details",
    { class: "meanings" },
    element("summary", {}, "What the columns mean"),
    element("dl", { class: "terms small" }, ...terms),
  );
}

function levels(): HTMLElement {
  const items = LEVELS.map(([level, meaning]) => element("li", {}, chip(level), ` ${reword(meaning)}`));
  return element("ul", {}, ...items);
}
