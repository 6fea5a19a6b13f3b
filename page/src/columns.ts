// The columns of the table of texts: their values, titles and meanings.
import { reword } from "./nouns.ts";
import { classOf, type Index } from "./payload.ts";

export type Value = string | number | null;

/** A column of the table. `decimals`: of its numbers; of text there are none. */
export interface Column {
  id: string;
  title: string;
  meaning: string;
  decimals?: number;
  value: (row: number) => Value;
}

/** Of the columns that every text has; a text's numbers bring their meanings along. */
export const MEANINGS: Readonly<Record<string, string>> = {
  name: "The text's id in the data, or its line or row there.",
  text: "The words, as the model reads them.",
  predicted: "The class that the model predicts.",
  label: "The class in the data.",
  right: "Whether the predicted class is the label.",
  confidence: "The probability of the predicted class, from 0 to 1.",
  length: "The number of words (tokens).",
  level:
    "Whether the map finds the words that decide this text. One text proves nothing about a map; its level says where to look.",
};

/** Of a model that gives a number, in place of the class and its probability. */
const OF_NUMBERS: Readonly<Record<string, string>> = { output: "The number that the model gives." };

/** All columns: those that every text has, and a text's numbers, by their names. */
export function columns(index: Index): Column[] {
  const className = (row: number, number: number | null | undefined): Value =>
    number === null || number === undefined ? null : classOf(index, row, number);
  const fixed: Omit<Column, "meaning">[] = [
    { id: "name", title: "name", value: (row) => index.name[row] ?? null },
    { id: "text", title: "text", value: (row) => textOf(index, row) },
    { id: "predicted", title: "predicted", value: (row) => className(row, index.predicted[row]) },
    { id: "confidence", title: "confidence", decimals: 3, value: (row) => index.confidence[row] ?? null },
    { id: "length", title: "length", decimals: 0, value: (row) => (index.tokens[row] ?? []).length },
  ];
  if (index.label.some((label) => label !== null)) {
    fixed.splice(3, 0, { id: "label", title: "label", value: (row) => className(row, index.label[row]) });
    fixed.splice(4, 0, { id: "right", title: "right", value: (row) => rightness(index, row) });
  }
  if (index.unit !== undefined) {
    const value = (row: number): Value => index.confidence[row] ?? null;
    fixed.splice(2, 2, { id: "output", title: "output", decimals: 3, value });
  }
  const levels = index.level;
  if (levels !== null) fixed.push({ id: "level", title: "level", value: (row) => levels[row] ?? null });
  const facts = index.facts.map((fact) => ({
    id: fact.name,
    title: reword(fact.name),
    meaning: reword(fact.meaning),
    decimals: fact.values.every((value) => value === null || Number.isInteger(value)) ? 0 : 3,
    value: (row: number): Value => fact.values[row] ?? null,
  }));
  const named = fixed.map((column) => ({
    ...column,
    title: reword(column.title),
    meaning: reword(MEANINGS[column.id] ?? OF_NUMBERS[column.id] ?? ""),
  }));
  return [...named, ...facts];
}

export function textOf(index: Index, row: number): string {
  return (index.tokens[row] ?? []).join(" ");
}

/** "right" or "wrong"; null where the label is not known. */
export function rightness(index: Index, row: number): "right" | "wrong" | null {
  const label = index.label[row] ?? null;
  if (label === null) return null;
  return label === index.predicted[row] ? "right" : "wrong";
}
