import { expect, it } from "vitest";
import { nextSort } from "../src/sorting.ts";
import { DEFAULT, fromHash, toHash, unfiltered } from "../src/state.ts";

it("restores any state from its address", () => {
  const hostile = `"><script>&=#%+ é\u202e${"x".repeat(300)}`;
  const state = { ...DEFAULT, text: hostile, search: "a b+c", sort: "-τ with gradient", least: "0.5", brush: "entropy:1,2,0.5,3" };
  expect(fromHash(toHash(state))).toEqual(state);
});

it("has a plain address without choices", () => {
  expect(toHash(DEFAULT)).toBe("#texts");
  for (const hash of ["", "#", "#texts"]) expect(fromHash(hash)).toEqual(DEFAULT);
});

it("leaves other anchors alone, and ignores what it does not know", () => {
  expect(fromHash("#finding-skill")).toBeNull();
  expect(fromHash("#text=7&__proto__=1&more=2")).toEqual({ ...DEFAULT, text: "7" });
});

it("keeps order, columns and open texts without filters", () => {
  const state = { ...DEFAULT, text: "7", sort: "name", search: "x", right: "wrong", brush: "f:0,1", show: "tau" };
  expect(unfiltered(state)).toEqual({ ...DEFAULT, text: "7", sort: "name", show: "tau" });
});

it("sorts numbers by the largest first, text from A, and ends with the third click", () => {
  const clicks = (isNumber: boolean): string[] => {
    let sort = "";
    return [1, 2, 3].map(() => (sort = nextSort(sort, "x", isNumber)));
  };
  expect(clicks(true)).toEqual(["-x", "x", ""]);
  expect(clicks(false)).toEqual(["x", "-x", ""]);
  expect(nextSort("y", "x", true)).toBe("-x");
});
