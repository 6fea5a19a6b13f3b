import { describe, expect, it } from "vitest";
import { change, distance, shares, wordsOf, type Reading } from "../src/two_maps.ts";

function reading(tokens: string[], weights: (number | null)[]): Reading {
  return { predicted: "good", probability: 0.9, label: null, tokens, weights };
}

const WINDOWS: Reading = { predicted: "good", probability: 0.9, label: null };

describe("the distance of two maps", () => {
  it("is the share of the weight that lies on other words", () => {
    const first = reading(["a", "b", "c"], [0.5, 0.25, 0.25]);
    expect(distance(first, first)).toBe(0);
    expect(distance(first, reading(["A", "B", "C"], [1, 1, 2]))).toBeCloseTo(0.25);
    expect(distance(reading(["a", "b"], [1, 0]), reading(["a", "b"], [0, 3]))).toBe(1);
  });

  it("is none where they cannot be compared, and the sentence says why", () => {
    const two = reading(["a", "b"], [1, 1]);
    const cases: [Reading | null, Reading | null, RegExp][] = [
      [two, null, /did not audit/],
      [two, WINDOWS, /several windows/],
      [two, reading(["a", "c"], [1, 1]), /other tokens/],
      [two, reading(["a"], [1]), /other tokens/],
      [two, reading(["a", "b"], [1, -1]), /negative/],
      [two, reading(["a", "b"], [1, null]), /undefined/],
      [two, reading(["a", "b"], [0, 0]), /all are 0/],
      [reading(["a"], [1]), reading(["a"], [1]), /only token/],
      [reading([], []), reading([], []), /all are 0/],
    ];
    for (const [first, second, cause] of cases) {
      expect(distance(first, second)).toBeNull();
      expect(change(first, second)).toMatch(cause);
    }
  });
});

it("names the words whose weights change most, the largest change first", () => {
  const said = change(reading(["dull", "film"], [3, 1]), reading(["dull", "film"], [1, 3]));
  expect(said).toBe("50 % of the weight lies on other words. Words that change most: “dull” 0.75 and 0.25; “film” 0.25 and 0.75.");
});

it("takes weights as shares of their sum, and a text's words from the first run that has them", () => {
  expect(shares(reading(["a", "b"], [1, 3]))).toEqual([0.25, 0.75]);
  expect(shares(null)).toBeNull();
  const text = { id: 0, name: "line 1", query: "", runs: [null, WINDOWS, reading(["a", "b"], [1, 1])] };
  expect(wordsOf(text)).toBe("a b");
  expect(wordsOf({ ...text, runs: [WINDOWS] })).toBe("");
});
