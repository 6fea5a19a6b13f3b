// Keys that move along the words of a text.

/** The place that a key leads to, of places 0 to `last`; null for a key that moves nothing. */
export function moved(key: string, place: number, last: number): number | null {
  const moves: Record<string, number> = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: last };
  const next = moves[key];
  return next === undefined ? null : Math.max(0, Math.min(next, last));
}
