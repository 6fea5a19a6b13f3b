import { describe, expect, it } from "vitest";
import type { Index } from "../src/payload.ts";
import { columns, rightness } from "../src/columns.ts";
import { anchors, searchable, select, sorted } from "../src/selection.ts";
import { DEFAULT, type State } from "../src/state.ts";

const index: Index = {
  classes: ["no", "yes"],
  block: 2,
  total: 3,
  maps: [],
  key: ["7", "7", "line 3", "10"],
  name: ["id 7", "id 7", "line 3", "id 10"],
  tokens: [["A", "good", "film"], ["bad"], ["Good", "grief", ",", "no"], []],
  label: [1, 0, null, 1],
  predicted: [1, 1, 0, 0],
  expected: [0.9, 0.4, null, 0.2],
  level: ["for", "cannot tell", "against", "not asked"],
  confidence: [0.9, 0.6, 0.75, 0.8],
  facts: [{ name: "tau", meaning: "A number.", values: [0.5, null, -0.25, 0] }],
  own: {},
  examples: [],
  whatIf: { bias: [], adversary: false, reason: "", tried: [] },
  smallest: null,
};
const all = columns(index);
const words = searchable(index);

function rows(change: Partial<State>): number[] {
  return select(index, all, words, { ...DEFAULT, ...change });
}

describe("columns", () => {
  it("name the words of which one is hidden, where each text has its own", () => {
    const hidden = { ...index, choices: [["has", "have"], ["is", "are"], ["go", "goes"], ["a", "b"]] };
    const shown = (id: string): unknown[] => {
      const column = columns(hidden).find((other) => other.id === id);
      return [0, 1, 2, 3].map((row) => column?.value(row));
    };
    expect(shown("predicted")).toEqual(["have", "are", "go", "a"]);
    expect(shown("label")).toEqual(["have", "is", null, "b"]);
  });
});

describe("select", () => {
  it("shows all texts in the order of the data without a choice", () => {
    expect(rows({})).toEqual([0, 1, 2, 3]);
  });
  it("finds texts that have every word, in any case, and names", () => {
    expect(rows({ search: "GOOD" })).toEqual([0, 2]);
    expect(rows({ search: "grief good" })).toEqual([2]);
    expect(rows({ search: "line 3" })).toEqual([2]);
    expect(rows({ search: "absent" })).toEqual([]);
  });
  it("finds a word with punctuation in the tokens that it was split into", () => {
    const split = { ...index, tokens: [["it", "'", "s"], ["does", "n't"], ["sits"], ["well-made"]] };
    const found = (search: string): number[] =>
      select(split, columns(split), searchable(split), { ...DEFAULT, search });
    expect(found("it's")).toEqual([0]);
    expect(found("It’s")).toEqual([0]);
    expect(found("it ' s")).toEqual([0]);
    expect(found("doesn't")).toEqual([1]);
    expect(found("well - made")).toEqual([3]);
    expect(found("its")).toEqual([2]);
  });
  it("filters by class, label, answer and level", () => {
    expect(rows({ predicted: "yes" })).toEqual([0, 1]);
    expect(rows({ label: "yes" })).toEqual([0, 3]);
    expect(rows({ right: "right" })).toEqual([0]);
    expect(rows({ right: "wrong" })).toEqual([1, 3]);
    expect(rows({ level: "cannot tell" })).toEqual([1]);
    expect(rows({ level: "not asked" })).toEqual([3]);
    expect(rows({ predicted: "unheard of" })).toEqual([]);
  });
  it("filters by length and confidence, both ends included, and ignores what is no number", () => {
    expect(rows({ shortest: "1", longest: "3" })).toEqual([0, 1]);
    expect(rows({ least: "0.75", most: ".8" })).toEqual([2, 3]);
    expect(rows({ least: "x", longest: " " })).toEqual([0, 1, 2, 3]);
  });
});

describe("sorted", () => {
  it("sorts numbers both ways, with those that are missing last", () => {
    expect(sorted([0, 1, 2, 3], all, "tau")).toEqual([2, 3, 0, 1]);
    expect(sorted([0, 1, 2, 3], all, "-tau")).toEqual([0, 3, 2, 1]);
  });
  it("sorts names with numbers by the number, and levels by what they say", () => {
    expect(sorted([0, 1, 2, 3], all, "name")).toEqual([0, 1, 3, 2]);
    expect(sorted([0, 1, 2, 3], all, "level")).toEqual([0, 2, 1, 3]);
  });
  it("keeps the order of the data for equal values and unknown columns", () => {
    expect(sorted([3, 0, 1], all, "nothing")).toEqual([3, 0, 1]);
    expect(sorted([0, 1, 2, 3], all, "-predicted")).toEqual([0, 1, 2, 3]);
  });
});

it("gives equal keys different anchors", () => {
  expect(anchors(index)).toEqual(["7", "7~2", "line 3", "10"]);
  expect(anchors({ ...index, key: ["a", "a~2", "a", "a"] })).toEqual(["a", "a~2", "a~3", "a~4"]);
});

it("knows right from wrong, and that it does not know", () => {
  expect([0, 1, 2].map((row) => rightness(index, row))).toEqual(["right", "wrong", null]);
});

it("has no columns of labels or levels where there are none", () => {
  const bare = columns({ ...index, label: [null, null, null, null], level: null });
  expect(bare.map((column) => column.id)).toEqual(["name", "text", "predicted", "confidence", "length", "tau"]);
});

it("has the number in place of the class, where the model gives a number", () => {
  const numbers = columns({ ...index, classes: ["stars"], unit: "stars", label: [null, null, null, null], level: null });
  expect(numbers.map((column) => column.id)).toEqual(["name", "text", "output", "length", "tau"]);
  expect(numbers[2]?.value(1)).toBe(0.6);
});
