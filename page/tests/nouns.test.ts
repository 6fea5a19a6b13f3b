import { expect, test } from "vitest";
import { reword, reworded } from "../src/nouns.ts";

const BAGS = { instance: "event", instances: "events", item: "patch", items: "patches" };

test("a sentence is about other instances, and quoted names stay", () => {
  expect(reworded("A text of a word: Words of texts, “a text”", BAGS)).toBe("An event of a patch: Patches of events, “a text”");
});

test("a token of pairs of texts is a token", () => {
  expect(reworded("2 words (tokens)", { ...BAGS, item: "word", items: "words" })).toBe("2 words (tokens)");
  expect(reworded("2 words (tokens)", BAGS)).toBe("2 patches (patches)");
});

test("a page about texts of words says what is written", () => {
  expect(reworded("a text of words", null)).toBe("a text of words");
  expect(reword("a text of words")).toBe("a text of words");
});
