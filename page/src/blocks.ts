// Blocks of texts, of which one is unpacked when one of its texts is first asked for.
import { unpack, type Index } from "./payload.ts";

export class Blocks<Text> {
  readonly #index: Index;
  readonly #packed: readonly string[];
  readonly #read: (index: Index, first: number, content: ArrayBuffer) => Text[];
  readonly #blocks = new Map<number, Promise<Text[]>>();

  constructor(
    index: Index,
    packed: readonly string[],
    read: (index: Index, first: number, content: ArrayBuffer) => Text[],
  ) {
    this.#index = index;
    this.#packed = packed;
    this.#read = read;
  }

  async of(row: number): Promise<Text> {
    const number = Math.floor(row / this.#index.block);
    const first = number * this.#index.block;
    let block = this.#blocks.get(number);
    if (block === undefined) {
      block = unpack(this.#packed[number] ?? "").then((content) => this.#read(this.#index, first, content));
      this.#blocks.set(number, block);
    }
    const text = (await block)[row - first];
    if (text === undefined) throw new RangeError(`block ${number} has no text ${row}`);
    return text;
  }
}
