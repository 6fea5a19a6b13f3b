// What if a word counted more or less? The prediction under weights that the reader sets, or what the audit tried.
import type { Blocks } from "./blocks.ts";
import { element, fixed, visible } from "./elements.ts";
import { reword } from "./nouns.ts";
import type { Index } from "./payload.ts";
import { erasedTop, keptTop, predict, shuffled, tvd, uniform, withWeight, type ReadOut } from "./prediction.ts";
import { WordStrip } from "./word_strip.ts";

const SHOWN = 8; // classes at least of which the page shows the probability
const RULES =
  "Where one word’s weight is set, the others are scaled so that all still add up to 1; if they were all 0, each " +
  "gets the same. The buttons start from the model’s own weights. Erased weights become 0 and the rest is scaled to " +
  "add up to 1; where nothing is left, the prediction is that of the bias alone.";

/** The part of each opened text, made once, so that what a reader has set stays while other texts are opened. */
export class WhatIf {
  readonly #index: Index;
  readonly #readOuts: Blocks<ReadOut>;
  readonly #parts = new Map<number, HTMLElement>();

  constructor(index: Index, readOuts: Blocks<ReadOut>) {
    this.#index = index;
    this.#readOuts = readOuts;
  }

  of(row: number): HTMLElement {
    const part = this.#parts.get(row) ?? this.#made(row);
    this.#parts.set(row, part);
    return part;
  }

  #made(row: number): HTMLElement {
    const summary = element("summary", {}, reword("What if a word counted more or less?"));
    const part = element("details", { class: "what-if" }, summary);
    if (this.#index.whatIf.bias.length === 0) {
      part.append(...tried(this.#index, row));
      return part;
    }
    part.addEventListener(
      "toggle",
      () => {
        void this.#readOuts.of(row).then((readOut) => {
          part.append(new Trial(this.#index, row, readOut).root);
        });
      },
      { once: true },
    );
    return part;
  }
}

/** One text under weights that the reader sets. */
class Trial {
  readonly root = element("div", { class: "trial" });
  readonly #readOut: ReadOut;
  readonly #classes: readonly string[];
  readonly #original: readonly number[];
  readonly #strip: WordStrip;
  readonly #name = element("bdi");
  readonly #slider = element("input", { type: "range", min: "0", max: "1", step: "0.001" });
  readonly #weight = element("data");
  readonly #rows = element("tbody");
  readonly #status = element("p", { class: "small", role: "status" });
  #weights: Float64Array;
  #place = 0;

  constructor(index: Index, row: number, readOut: ReadOut) {
    const tokens = (index.tokens[row] ?? []).map(visible);
    this.#readOut = readOut;
    this.#classes = index.classes.map(visible);
    this.#weights = readOut.attention;
    this.#original = predict(readOut, readOut.attention);
    this.#strip = new WordStrip(tokens, readOut.attention, (place) => {
      this.#choose(place);
    });
    this.#slider.disabled = tokens.length < 2;
    this.#slider.addEventListener("input", () => {
      this.#set(withWeight(this.#weights, this.#place, this.#slider.valueAsNumber), "You set a weight.");
    });
    const head = ["class", "now", "", "own"].map((title) => element("th", { scope: "col" }, title));
    const label = element(
      "label",
      { class: "weight" },
      element("span", {}, "Weight of “", this.#name, "”"),
      this.#slider,
      this.#weight,
    );
    this.root.append(
      this.#buttons(tokens.length),
      element("p", { class: "small" }, reword("Choose a word, then drag its weight. A thin line marks the model’s own weight.")),
      this.#strip.root,
      label,
      element(
        "table",
        { class: "classes" },
        element("caption", { class: "small" }, "Probability of each class now, and under the model’s own weights"),
        element("thead", {}, element("tr", {}, ...head)),
        this.#rows,
      ),
      this.#status,
      element("p", { class: "small" }, reword(RULES)),
    );
    this.#choose(0);
    this.#set(readOut.attention, "These are the model’s own weights.");
  }

  #choose(place: number): void {
    this.#place = place;
    this.#strip.choose(place);
    this.#name.textContent = this.#strip.tokens[place] ?? "";
    this.#showWeight();
  }

  #set(weights: Float64Array, done: string): void {
    this.#weights = weights;
    const now = predict(this.#readOut, weights);
    this.#strip.show(weights);
    this.#showWeight();
    this.#rows.replaceChildren(...this.#shown(now).map((c) => this.#classRow(c, now)));
    const best = likeliest(now);
    const answer = best === likeliest(this.#original) ? "The answer is the same" : "The answer is another now";
    const change = tvd(this.#original, now);
    this.#status.replaceChildren(
      `${done} ${answer}: `,
      element("bdi", {}, this.#classes[best] ?? ""),
      `, with probability ${fixed(now[best] ?? 0, 3)}. The prediction has changed by `,
      element("data", { value: String(change), class: "tvd" }, fixed(change, 3)),
      ` (TVD), and ${fixed(tvd(this.#readOut.attention, weights), 3)} of the weight has moved.`,
    );
  }

  #showWeight(): void {
    const weight = this.#weights[this.#place] ?? 0;
    this.#slider.value = String(weight);
    this.#slider.setAttribute("aria-valuetext", fixed(weight, 3));
    this.#weight.value = String(weight);
    this.#weight.textContent = fixed(weight, 3);
  }

  /** The likeliest classes, before and now; all where they are few. */
  #shown(now: readonly number[]): number[] {
    const classes = [...now.keys()];
    if (classes.length <= SHOWN) return classes;
    const top = (p: readonly number[]): number[] => [...p.keys()].sort((a, b) => (p[b] ?? 0) - (p[a] ?? 0)).slice(0, SHOWN);
    const chosen = new Set([...top(this.#original), ...top(now)]);
    return classes.filter((c) => chosen.has(c)).sort((a, b) => (now[b] ?? 0) - (now[a] ?? 0));
  }

  #classRow(c: number, now: readonly number[]): HTMLElement {
    const [probability, original] = [now[c] ?? 0, this.#original[c] ?? 0];
    const bar = element("td", { class: "of-bar", "aria-hidden": "true" }, element("i"));
    bar.style.setProperty("--v", String(probability));
    bar.style.setProperty("--own", String(original));
    return element(
      "tr",
      { "data-class": String(c) },
      element("th", { scope: "row" }, element("bdi", {}, this.#classes[c] ?? "")),
      element("td", { class: "of-number" }, element("data", { value: String(probability) }, fixed(probability, 3))),
      bar,
      element("td", { class: "of-number" }, fixed(original, 3)),
    );
  }

  #buttons(count: number): HTMLElement {
    const own = this.#readOut.attention;
    const seed = numberField(1, 999_999);
    const top = numberField(1, Math.max(1, count));
    const button = (name: string, weights: () => Float64Array, done: () => string): HTMLElement => {
      const made = element("button", { type: "button" }, name);
      made.addEventListener("click", () => {
        this.#set(weights(), done());
      });
      return made;
    };
    const { adversary } = this.#readOut;
    const words = (k: number): string => reword(k === 1 ? "the most attended word" : `the ${k} most attended words`);
    return element(
      "div",
      { class: "moves", role: "group", "aria-label": "Other weights" },
      button("Uniform", () => uniform(count), () => reword("All words have the same weight.")),
      element(
        "span",
        {},
        button("Shuffle", () => shuffled(own, used(seed)), () => `The weights were shuffled with seed ${seed.value}.`),
        element("label", {}, " seed ", seed),
      ),
      ...(adversary === null
        ? []
        : [button("Adversary", () => adversary, () => "These are the adversary’s weights.")]),
      element(
        "span",
        {},
        button("Keep the top", () => keptTop(own, used(top)), () => `Only ${words(used(top))} kept weight.`),
        " ",
        button("Erase the top", () => erasedTop(own, used(top)), () => `The weight of ${words(used(top))} was erased.`),
        element("label", {}, " k = ", top),
      ),
      button("Reset", () => own, () => "These are the model’s own weights."),
    );
  }
}

function numberField(smallest: number, largest: number): HTMLInputElement {
  const field = element("input", { type: "number", min: String(smallest), max: String(largest), value: String(smallest) });
  field.addEventListener("change", () => {
    used(field);
  });
  return field;
}

/** The whole number that is used of what was typed, which the field shows from then on. */
function used(field: HTMLInputElement): number {
  const [smallest, largest] = [Number(field.min), Number(field.max)];
  const value = Math.max(smallest, Math.min(largest, Math.floor(field.valueAsNumber) || smallest));
  field.value = String(value);
  return value;
}

function likeliest(probabilities: readonly number[]): number {
  return probabilities.indexOf(Math.max(...probabilities));
}

/** What the audit did to this text, of a model whose prediction the page cannot compute; and why it cannot. */
function tried(index: Index, row: number): HTMLElement[] {
  const why = element("p", { class: "small" }, index.whatIf.reason);
  const known = index.whatIf.tried.filter(({ tvd: t, changed }) => (t[row] ?? changed[row] ?? null) !== null);
  if (known.length === 0) return [why];
  const head = ["what the audit did", "change of the prediction (TVD)", "another answer"];
  const rows = known.map(({ name, tvd: changes, changed }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, reword(name)),
      element("td", { class: "of-number" }, changeText(changes[row])),
      element("td", {}, changedText(changed[row])),
    ),
  );
  const table = element(
    "table",
    { class: "tried" },
    element("thead", {}, element("tr", {}, ...head.map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {}, ...rows),
  );
  return [why, element("p", { class: "small" }, reword("What the audit itself tried on this text:")), table];
}

/** The audit may have kept only whether the answer is another one. */
function changeText(change: number | null | undefined): string {
  return typeof change === "number" ? fixed(change, 3) : "not kept";
}

function changedText(share: number | null | undefined): string {
  if (typeof share !== "number") return "not measured";
  if (share === 0 || share === 1) return share === 1 ? "yes" : "no";
  return `in ${fixed(100 * share, 0)} % of the tries`;
}
