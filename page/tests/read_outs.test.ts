import { expect, it } from "vitest";
import type { Index } from "../src/payload.ts";
import { readReadOuts } from "../src/read_outs.ts";

const index = {
  block: 2,
  tokens: [["x", "y"], ["z"]],
  whatIf: { bias: [1, 3, 0], adversary: true, reason: "", tried: [] },
} as unknown as Index;

function packed(step: number, columns: number[][]): ArrayBuffer {
  const bytes = Buffer.alloc(8 + 4 * 3 * columns.length);
  bytes.writeDoubleLE(step, 0);
  for (const [c, values] of columns.entries()) {
    for (const [t, value] of values.entries()) {
      const number = Buffer.alloc(4);
      if (c < 2) number.writeFloatLE(value);
      else number.writeInt32LE(value);
      for (const [place, byte] of number.entries()) bytes[8 + 12 * c + 3 * place + t] = byte;
    }
  }
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
}

it("reads weights, the adversary's where there are any, and the relevance less that of the first class", () => {
  const columns = [[0.25, 0.75, 1], [1, 0, Number.NaN], [5, -7, 2 ** 31 - 1], [-1, 0, 1]];
  const [first, second] = readReadOuts(index, 0, packed(0.5, columns));
  expect([...(first?.attention ?? [])]).toEqual([0.25, 0.75]);
  expect([...(first?.adversary ?? [])]).toEqual([1, 0]);
  expect(second?.adversary).toBeNull();
  expect(first?.relevance.map((values) => [...values])).toEqual([[0, 0], [2.5, -3.5], [-0.5, 0]]);
  expect(second?.relevance.map((values) => [...values])).toEqual([[0], [(2 ** 31 - 1) / 2], [0.5]]);
  expect(first?.bias).toEqual([0, 2, -1]);
});
