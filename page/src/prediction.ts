// The prediction under any weights, of a model whose read-out is linear: softmax(Σ α · relevance + bias).

/** One text as the model reads it out: a number per word; `relevance` per class and word. */
export interface ReadOut {
  attention: Float64Array;
  adversary: Float64Array | null;
  relevance: Float64Array[];
  bias: readonly number[];
}

const ROUNDING = 4 * 2 ** -23; // of a weight in single precision, as heedmap/measures.py has it

/** The probability of every class. Where no word has any weight, it is that of the bias alone. */
export function predict(readOut: ReadOut, weights: Float64Array): number[] {
  const logits = readOut.bias.map((bias, c) => {
    const relevance = readOut.relevance[c];
    return weights.reduce((sum, weight, t) => sum + weight * (relevance?.[t] ?? 0), bias);
  });
  const largest = Math.max(...logits);
  const shares = logits.map((logit) => Math.exp(logit - largest));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}

/** Half the sum of the differences: total variation distance. */
export function tvd(p: ArrayLike<number>, q: ArrayLike<number>): number {
  return Array.from(p).reduce((sum, x, i) => sum + Math.abs(x - (q[i] ?? 0)), 0) / 2;
}

/** The weights as shares of their sum; all 0 where they have none. */
export function normalised(weights: Float64Array): Float64Array {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return sum > 0 ? weights.map((weight) => weight / sum) : new Float64Array(weights.length);
}

/** One word's weight set, and the others scaled so that all add up to 1; of others that are all 0, each gets as much. */
export function withWeight(weights: Float64Array, place: number, weight: number): Float64Array {
  if (weights.length < 2) return normalised(weights);
  const others = weights.reduce((sum, w, t) => (t === place ? sum : sum + w), 0);
  const rest = 1 - weight;
  return weights.map((w, t) => {
    if (t === place) return weight;
    return others > 0 ? (w / others) * rest : rest / (weights.length - 1);
  });
}

/** The same weight on every word. */
export function uniform(count: number): Float64Array {
  return new Float64Array(count).fill(1 / count);
}

/** The weights in another order: the same seed gives the same one. */
export function shuffled(weights: Float64Array, seed: number): Float64Array {
  const mixed = Float64Array.from(weights);
  const next = generator(seed);
  for (let last = mixed.length - 1; last > 0; last--) {
    const place = Math.floor(next() * (last + 1));
    [mixed[last], mixed[place]] = [mixed[place] ?? 0, mixed[last] ?? 0];
  }
  return mixed;
}

/** Only the `count` words of the largest weights keep theirs, scaled. */
export function keptTop(weights: Float64Array, count: number): Float64Array {
  const top = new Set(ranking(weights).slice(0, count));
  return normalised(weights.map((weight, t) => (top.has(t) ? weight : 0)));
}

/** The `count` words of the largest weights lose theirs, and what is left is scaled. */
export function erasedTop(weights: Float64Array, count: number): Float64Array {
  const top = new Set(ranking(weights).slice(0, count));
  return normalised(weights.map((weight, t) => (top.has(t) ? 0 : weight)));
}

/** The words, the largest weight first; of weights that rounding alone tells apart, the first in the text. */
export function ranking(weights: Float64Array): number[] {
  const order = [...weights.keys()].sort((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0) || a - b);
  const largest = weights[order[0] ?? 0] ?? 0;
  const error = (place: number): number => {
    const weight = weights[place] ?? 0;
    return weight > 0 ? ROUNDING * weight * (1 + Math.log(largest / weight)) : 0;
  };
  const ties = new Float64Array(weights.length); // the number of the tie that each word is in
  for (const [i, place] of order.entries()) {
    const before = order[i - 1];
    if (before === undefined) continue;
    const gap = (weights[before] ?? 0) - (weights[place] ?? 0);
    ties[place] = (ties[before] ?? 0) + (gap <= Math.max(error(before), error(place)) ? 0 : 1);
  }
  return order.sort((a, b) => (ties[a] ?? 0) - (ties[b] ?? 0) || a - b);
}

/** Numbers from 0 to 1 that a seed determines: a linear congruential generator, its first numbers thrown away. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  for (let i = 0; i < 8; i++) next(); // those of seeds that are alike are alike
  return next;
}
