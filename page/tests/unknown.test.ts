import { expect, it } from "vitest";
import type { Index } from "../src/payload.ts";
import { columns } from "../src/columns.ts";
import { DEFAULT, type State } from "../src/state.ts";
import { impossible, unknown } from "../src/unknown.ts";

const index: Index = {
  classes: ["no", "yes"],
  block: 1,
  total: 1,
  maps: [],
  key: ["7"],
  name: ["id 7"],
  tokens: [["a", "film"]],
  label: [1],
  predicted: [1],
  expected: [0.9],
  level: ["for"],
  confidence: [0.9],
  facts: [{ name: "tau", meaning: "A number.", values: [0.5] }],
  own: {},
  examples: [],
  whatIf: { bias: [], adversary: false, reason: "", tried: [] },
  smallest: null,
};

function told(change: Partial<State>): string[] {
  return unknown({ ...DEFAULT, ...change }, index, columns(index), ["7"]);
}

it("names in one line what an address has and the page has not", () => {
  const [line = "", ...more] = told({ text: "nope", sort: "bogus", predicted: "9", level: "zz", least: "x" });
  expect(more).toEqual([]);
  for (const name of ["text “nope”", "sort “bogus”", "predicted “9”", "level “zz”", "least “x”"]) {
    expect(line).toContain(name);
  }
});

it("says nothing of what it knows", () => {
  const known = { text: "7", sort: "-tau", show: "tau", predicted: "yes", right: "wrong", level: "not asked" };
  expect(told({ ...known, least: ".5", search: "anything" })).toEqual([]);
});

it("says why no text lies between bounds", () => {
  const reasons = (change: Partial<State>): string[] => impossible({ ...DEFAULT, ...change });
  expect(reasons({ shortest: "30", longest: "20" })).toEqual(["No text has a length from 30 to 20"]);
  expect(reasons({ least: "0.9", most: "0.2" })).toEqual(["No text has a confidence from 0.9 to 0.2"]);
  expect(reasons({ least: "5" })).toEqual(["A confidence lies between 0 and 1"]);
  expect(reasons({ most: "-1" })).toEqual(["A confidence lies between 0 and 1"]);
  expect(reasons({ shortest: "20", longest: "20", least: "0", most: "1" })).toEqual([]);
});
