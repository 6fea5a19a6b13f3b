// How the words of a text are broken into lines of columns, each as wide as its word.

export interface Line {
  first: number;
  widths: number[];
}

const NARROWEST = 22; // pixels, so that a bar can be pointed at
const WIDEST = 180; // of a very long word, which is cut
const PADDING = 8;

/** Break words of these widths into as few lines as fit `room` pixels each, and these about equally long. */
export function balancedLines(words: readonly number[], room: number): Line[] {
  const fewest = breakLines(words, room);
  let [low, high] = [0, room];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (breakLines(words, middle).length > fewest.length) low = middle;
    else high = middle;
  }
  return fewest.length < 2 ? fewest : breakLines(words, high);
}

/** Break words of these widths into lines of at most `room` pixels; a wider word has a line of its own. */
export function breakLines(words: readonly number[], room: number): Line[] {
  const lines: Line[] = [];
  let used = Infinity;
  for (const [i, word] of words.entries()) {
    const width = Math.ceil(Math.min(Math.max(word + PADDING, NARROWEST), WIDEST));
    if (used + width > room) {
      lines.push({ first: i, widths: [] });
      used = 0;
    }
    lines.at(-1)?.widths.push(width);
    used += width;
  }
  return lines;
}

/** Decimals that tell a map's 127 steps apart, at most six. */
export function decimalsOf(largest: number): number {
  if (!(largest > 0)) return 0;
  return Math.max(0, Math.min(6, Math.ceil(-Math.log10(largest / 127))));
}
