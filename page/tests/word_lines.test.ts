import { expect, it } from "vitest";
import { balancedLines, breakLines, decimalsOf } from "../src/word_lines.ts";

const counts = (lines: { widths: number[] }[]): number[] => lines.map((line) => line.widths.length);

it("breaks lines where the next word does not fit, and never loses a word", () => {
  expect(breakLines([], 100)).toEqual([]);
  expect(counts(breakLines([42, 42, 42], 100))).toEqual([2, 1]);
  expect(breakLines([42, 42, 42], 100)[1]?.first).toBe(2);
  expect(counts(breakLines([1000, 1, 1000], 50))).toEqual([1, 1, 1]);
  expect(breakLines([1000], 5000)[0]?.widths).toEqual([180]);
});

it("makes as few lines as fit, about equally long", () => {
  const words = Array.from({ length: 11 }, () => 42);
  expect(counts(breakLines(words, 500))).toEqual([10, 1]);
  expect(counts(balancedLines(words, 500))).toEqual([6, 5]);
  expect(counts(balancedLines(words, 5000))).toEqual([11]);
  expect(balancedLines([], 500)).toEqual([]);
});

it("shows as many decimals as tell the steps of a scale apart", () => {
  expect([0, Number.NaN, 1, 0.3, 127, 2e-4].map(decimalsOf)).toEqual([0, 0, 3, 3, 0, 6]);
});
