// The read-outs that the page holds, as heedmap/report/what_if_data.py packs them.
import type { Index } from "./payload.ts";
import { normalised, type ReadOut } from "./prediction.ts";

/** Read the read-outs of the texts of one block, of which the first has number `first`. */
export function readReadOuts(index: Index, first: number, content: ArrayBuffer): ReadOut[] {
  const { bias, adversary } = index.whatIf;
  const lengths = index.tokens.slice(first, first + index.block).map((tokens) => tokens.length);
  const words = lengths.reduce((sum, length) => sum + length, 0);
  const step = new DataView(content).getFloat64(0, true);
  let at = 8;
  const column = (): DataView => {
    const view = new DataView(together(new Uint8Array(content, at, 4 * words), words));
    at += 4 * words;
    return view;
  };
  const floats = (view: DataView): Float64Array =>
    Float64Array.from({ length: words }, (_, t) => view.getFloat32(4 * t, true));
  const attention = floats(column());
  const adversarial = adversary ? floats(column()) : null;
  const relevance = bias.slice(1).map(() => {
    const view = column();
    return Float64Array.from({ length: words }, (_, t) => view.getInt32(4 * t, true) * step);
  });
  const differences = bias.map((value) => value - (bias[0] ?? 0));
  let start = 0;
  return lengths.map((length) => {
    const end = start + length;
    const weights = adversarial?.slice(start, end);
    const readOut = {
      attention: normalised(attention.slice(start, end)),
      adversary: weights === undefined || weights.some(Number.isNaN) ? null : normalised(weights),
      relevance: [new Float64Array(length), ...relevance.map((values) => values.slice(start, end))],
      bias: differences,
    };
    start = end;
    return readOut;
  });
}

/** The bytes of each number together again, of bytes of the same place together. */
function together(planes: Uint8Array, count: number): ArrayBuffer {
  const bytes = new Uint8Array(planes.length);
  for (let place = 0; place < 4; place++) {
    for (let i = 0; i < count; i++) bytes[4 * i + place] = planes[place * count + i] ?? 0;
  }
  return bytes.buffer;
}
