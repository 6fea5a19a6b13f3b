// The controls above the table: each sets one part of the state.
import { element, visible } from "./elements.ts";
import { reword } from "./nouns.ts";
import { LEVELS, type Index } from "./payload.ts";
import type { State } from "./state.ts";

type Field = Exclude<keyof State, "text" | "pin" | "brush">;
type Control = HTMLInputElement | HTMLSelectElement;
type Choice = readonly [value: string, words: string];

/** `change` is told the new value of one part of the state, and whether it is still being typed. */
export class Filters {
  readonly root: HTMLElement;
  readonly #controls = new Map<Field, Control>();
  readonly #status = element("p", { class: "small count", role: "status" });
  readonly #change: (field: Field, value: string, typing: boolean) => void;

  constructor(
    index: Index,
    numbers: readonly string[],
    sortable: readonly Choice[],
    change: (field: Field, value: string, typing: boolean) => void,
    clear: () => void,
  ) {
    this.#change = change;
    const labels = index.label.flatMap((label) => (label === null ? [] : [label]));
    const isLabelled = labels.length > 0;
    const hasClasses = index.unit === undefined;
    const button = element("button", { type: "button" }, "Show all");
    button.addEventListener("click", clear);
    const more = element(
      "div",
      { class: "more" },
      ...(hasClasses ? [this.#select("predicted", "predicted", classChoices(index, index.predicted))] : []),
      ...(isLabelled ? [this.#select("label", "label", classChoices(index, labels))] : []),
      ...(isLabelled ? [this.#select("right", "answer", ["right", "wrong"].map(same))] : []),
      ...(index.level === null ? [] : [this.#select("level", "level", LEVELS.map(same))]),
      this.#range("length", ["shortest", "longest"], { min: "0", step: "1" }),
      ...(hasClasses ? [this.#range("confidence", ["least", "most"], { min: "0", max: "1", step: "any" })] : []),
      ...(numbers.length === 0 ? [] : [this.#select("show", "also show", numbers.map((name): Choice => [name, reword(name)]), "nothing more")]),
      element("span", { class: "sorting" }, this.#select("sort", "sort by", sortable, "order of the data")),
      button,
    );
    const details = element("details", { class: "filters" }, element("summary", {}, "Filter and sort"), more);
    const wide = matchMedia("(min-width: 45.01rem)"); // there the filters are always open
    wide.addEventListener("change", () => {
      details.open = wide.matches;
    });
    details.open = wide.matches;
    this.root = element(
      "div",
      { role: "search", "aria-label": reword("Filter the texts") },
      this.#input("search", "search", { type: "search", placeholder: reword("words or a name") }),
      details,
      this.#status,
    );
  }

  /** Show the choices of a state, and what they leave. */
  show(state: Readonly<State>, status: string): void {
    for (const [field, control] of this.#controls) {
      if (control.value !== state[field]) control.value = state[field];
    }
    if (this.#status.textContent !== status) this.#status.textContent = status;
  }

  #select(field: Field, words: string, choices: readonly Choice[], none = "all"): HTMLElement {
    const all: Choice[] = [["", none], ...choices];
    const options = all.map(([value, text]) => element("option", { value }, visible(text)));
    const control = element("select", {}, ...options);
    control.addEventListener("change", () => {
      this.#change(field, control.value, false);
    });
    return this.#labelled(field, words, control);
  }

  #input(field: Field, words: string, attributes: Record<string, string>): HTMLElement {
    const control = element("input", { autocomplete: "off", spellcheck: "false", ...attributes });
    control.addEventListener("input", () => {
      this.#change(field, control.value, true);
    });
    return this.#labelled(field, words, control);
  }

  #range(words: string, [low, high]: [Field, Field], attributes: Record<string, string>): HTMLElement {
    const number = { type: "number", inputmode: "decimal", ...attributes };
    return element(
      "span",
      { class: "range" },
      this.#input(low, `${words} from`, number),
      this.#input(high, "to", { ...number, "aria-label": `${words} to` }),
    );
  }

  #labelled(field: Field, words: string, control: Control): HTMLElement {
    this.#controls.set(field, control);
    return element("label", { class: `field of-${field}` }, element("span", {}, words), control);
  }
}

function same(value: string): Choice {
  return [value, value];
}

function classChoices(index: Index, numbers: readonly number[]): Choice[] {
  const counts = new Map<number, number>();
  for (const number of numbers) counts.set(number, (counts.get(number) ?? 0) + 1);
  return [...counts.entries()]
    .sort(([a], [b]) => a - b)
    .map(([number, count]) => {
      const name = index.classes[number] ?? "";
      return [name, `${name} (${count})`];
    });
}
