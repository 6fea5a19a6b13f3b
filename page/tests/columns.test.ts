import { expect, test } from "vitest";
import { columns, MEANINGS } from "../src/columns.ts";
import type { Index } from "../src/payload.ts";

test("every column that a table can have says what it means", () => {
  const index: Index = {
    classes: ["no", "yes"],
    block: 2,
    total: 1,
    maps: [],
    key: ["a"],
    name: ["a"],
    tokens: [["w"]],
    label: [1],
    predicted: [1],
    expected: [0.9],
    level: ["for"],
    confidence: [0.9],
    facts: [{ name: "__proto__", meaning: "Theirs.", values: [1] }],
    own: {},
    examples: [],
    whatIf: { bias: [], adversary: false, reason: "", tried: [] },
    smallest: null,
  };
  const all = columns(index);
  expect(all.map((column) => column.id)).toEqual([...Object.keys(MEANINGS), "__proto__"]);
  for (const column of all) expect(column.meaning).toMatch(/\.$/);
  expect(all.at(-1)?.meaning).toBe("Theirs.");
});
