// The words of a text as a row of buttons, each with a bar for its weight; one of them is chosen.
import { moved } from "./arrow_keys.ts";
import { element, fixed } from "./elements.ts";
import { reword } from "./nouns.ts";

export class WordStrip {
  readonly root = element("div", { class: "strip", role: "listbox", "aria-label": reword("Words and their weights") });
  readonly tokens: readonly string[];
  readonly #own: Float64Array;
  readonly #words: readonly HTMLElement[];
  #chosen = 0;

  constructor(tokens: readonly string[], own: Float64Array, choose: (place: number) => void) {
    this.tokens = tokens;
    this.#own = own;
    this.#words = tokens.map((token, place) =>
      element(
        "div",
        { role: "option", "data-place": String(place), tabindex: "-1" },
        element("i", { "aria-hidden": "true" }),
        element("bdi", {}, token),
      ),
    );
    this.root.append(...this.#words);
    this.root.addEventListener("click", (event) => {
      const word = (event.target as HTMLElement).closest<HTMLElement>("[data-place]");
      if (word !== null) choose(Number(word.dataset.place));
    });
    this.root.addEventListener("keydown", (event) => {
      const place = moved(event.key, this.#chosen, tokens.length - 1);
      if (place === null) return;
      event.preventDefault();
      choose(place);
      this.#words[this.#chosen]?.focus();
    });
  }

  choose(place: number): void {
    this.#chosen = place;
    for (const [i, word] of this.#words.entries()) {
      word.setAttribute("aria-selected", String(i === place));
      word.tabIndex = i === place ? 0 : -1;
    }
  }

  /** Draw the weights: bars on one scale with the model's own, which a line marks. */
  show(weights: Float64Array): void {
    const largest = Math.max(...weights, ...this.#own);
    for (const [place, word] of this.#words.entries()) {
      const weight = weights[place] ?? 0;
      word.style.setProperty("--v", String(largest > 0 ? weight / largest : 0));
      word.style.setProperty("--own", String(largest > 0 ? (this.#own[place] ?? 0) / largest : 0));
      word.dataset.weight = String(weight);
      word.setAttribute("aria-label", `${this.tokens[place] ?? ""}, weight ${fixed(weight, 3)}`);
    }
  }
}
