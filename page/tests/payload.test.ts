import { deflateSync } from "node:zlib";
import { expect, it } from "vitest";
import { Blocks } from "../src/blocks.ts";
import { readBlock, readIndex, type Index } from "../src/payload.ts";

const index = {
  classes: ["a", "b"],
  block: 2,
  total: 3,
  maps: [
    { name: "attention", kind: "attention", signed: false },
    { name: "words", kind: "importance", signed: true },
  ],
  tokens: [["x", "y"], ["z"], ["u"]],
  own: { "1": [["p", "q", "r"], null, null] },
} as unknown as Index;

function block(scales: number[], steps: number[]): string {
  const bytes = Buffer.alloc(4 * scales.length + steps.length);
  for (const [i, scale] of scales.entries()) bytes.writeFloatLE(scale, 4 * i);
  for (const [i, step] of steps.entries()) bytes.writeInt8(step, 4 * scales.length + i);
  return deflateSync(bytes).toString("base64");
}

it("reads the index as it was packed", async () => {
  const packed = deflateSync(Buffer.from(JSON.stringify(index))).toString("base64");
  expect(await readIndex(packed)).toEqual(index);
});

it("reads every map of every block, with its sign, its own tokens and its gaps", async () => {
  const maps = new Blocks(
    index,
    [
      block([1, Number.NaN, 2, 0], [127, 0, 127, -127, 64, 0]),
      block([0.5, Number.NaN], [127]),
    ],
    readBlock,
  );
  const [first, second, third] = await Promise.all([0, 1, 2].map((row) => maps.of(row)));
  expect(first?.map((map) => map.values && [...map.values])).toEqual([[1, 0], [2, -2, (2 * 64) / 127]]);
  expect(first?.map((map) => map.tokens)).toEqual([["x", "y"], ["p", "q", "r"]]);
  expect(second?.map((map) => map.values && [...map.values])).toEqual([null, [0]]);
  expect(third?.map((map) => map.values && [...map.values])).toEqual([[0.5], null]);
});
