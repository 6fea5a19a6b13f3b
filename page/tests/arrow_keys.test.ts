import { expect, it } from "vitest";
import { moved } from "../src/arrow_keys.ts";

it("moves along the words, and not beyond their ends", () => {
  expect(moved("ArrowRight", 0, 2)).toBe(1);
  expect(moved("ArrowRight", 2, 2)).toBe(2);
  expect(moved("ArrowLeft", 0, 2)).toBe(0);
  expect(moved("Home", 2, 2)).toBe(0);
  expect(moved("End", 0, 2)).toBe(2);
});

it("is none of other keys, and stays at the only word", () => {
  for (const key of ["Enter", "ArrowUp", "a", "__proto__x"]) expect(moved(key, 1, 2)).toBeNull();
  for (const key of ["ArrowRight", "ArrowLeft", "Home", "End"]) expect(moved(key, 0, 0)).toBe(0);
});
