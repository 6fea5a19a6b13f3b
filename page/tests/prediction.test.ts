import { expect, it } from "vitest";
import { erasedTop, keptTop, predict, ranking, shuffled, tvd, uniform, withWeight } from "../src/prediction.ts";

const w = (...values: number[]): Float64Array => Float64Array.from(values);
const two = {
  attention: w(0.5, 0.25, 0.25),
  adversary: null,
  relevance: [w(0, 0, 0), w(4, -4, 0)],
  bias: [0, 1],
};

it("predicts the sigmoid of the sum for two classes", () => {
  const [first, second] = predict(two, two.attention);
  expect(second).toBeCloseTo(1 / (1 + Math.exp(-(0.5 * 4 - 0.25 * 4 + 1))), 12);
  expect((first ?? 0) + (second ?? 0)).toBeCloseTo(1, 12);
});

it("predicts a softmax of several classes, of large logits too, and the bias alone without weights", () => {
  const readOut = { attention: w(1), adversary: null, relevance: [w(0), w(2000), w(2000)], bias: [0, 0, Math.log(3)] };
  expect(predict(readOut, w(1))).toEqual([0, 0.25, 0.75].map((p) => expect.closeTo(p, 12) as number));
  expect(predict(readOut, w(0))).toEqual([0.2, 0.2, 0.6].map((p) => expect.closeTo(p, 12) as number));
});

it("sets one weight and scales the others", () => {
  expect([...withWeight(two.attention, 0, 0)]).toEqual([0, 0.5, 0.5]);
  expect([...withWeight(two.attention, 0, 1)]).toEqual([1, 0, 0]);
  expect([...withWeight(two.attention, 1, 0.5)]).toEqual([expect.closeTo(1 / 3, 12), 0.5, expect.closeTo(1 / 6, 12)]);
});

it("gives each of the others as much where they were all 0, and keeps the only word's weight", () => {
  expect([...withWeight(w(1, 0, 0), 0, 0.5)]).toEqual([0.5, 0.25, 0.25]);
  expect([...withWeight(w(1, 0), 1, 0)]).toEqual([1, 0]);
  expect([...withWeight(w(1), 0, 0)]).toEqual([1]);
});

it("keeps and erases the top words and scales the rest; of ties the first in the text comes first", () => {
  expect([...keptTop(two.attention, 1)]).toEqual([1, 0, 0]);
  expect([...keptTop(two.attention, 2)]).toEqual([expect.closeTo(2 / 3, 12), expect.closeTo(1 / 3, 12), 0]);
  expect([...erasedTop(two.attention, 1)]).toEqual([0, 0.5, 0.5]);
  expect([...erasedTop(two.attention, 2)]).toEqual([0, 0, 1]);
  expect([...erasedTop(two.attention, 3)]).toEqual([0, 0, 0]);
  expect([...erasedTop(w(1, 0), 1)]).toEqual([0, 0]);
});

it("ranks weights that only rounding tells apart in the order of the text", () => {
  expect(ranking(w(0.2, 0.2 + 2e-8, 0.6))).toEqual([2, 0, 1]);
  expect(ranking(w(0.2, 0.2 + 2e-6, 0.6))).toEqual([2, 1, 0]);
  expect(ranking(w(0, 0, 1))).toEqual([2, 0, 1]);
  expect(ranking(w())).toEqual([]);
});

it("shuffles by seed: the same weights in another order, the same for the same seed", () => {
  const weights = w(...Array.from({ length: 20 }, (_, i) => i));
  const orders = [1, 2, 3].map((seed) => [...shuffled(weights, seed)]);
  for (const order of orders) expect([...order].sort((a, b) => a - b)).toEqual([...weights]);
  expect([...shuffled(weights, 2)]).toEqual(orders[1]);
  expect(new Set(orders.map(String)).size).toBe(3);
  expect([...shuffled(w(1), 5)]).toEqual([1]);
});

it("shuffles into every order about as often", () => {
  const counts = new Map<string, number>();
  for (let seed = 1; seed <= 6000; seed++) {
    const order = String(shuffled(w(1, 2, 3), seed));
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  expect(counts.size).toBe(6);
  for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
});

it("measures the change of a prediction", () => {
  expect(tvd([0.2, 0.8], [0.7, 0.3])).toBeCloseTo(0.5, 12);
  expect([...uniform(4)]).toEqual([0.25, 0.25, 0.25, 0.25]);
});
