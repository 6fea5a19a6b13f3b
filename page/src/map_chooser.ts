// A reader chooses two runs and a text, and sees both maps of it. The choice stands in the address.
import { element, visible } from "./elements.ts";
import { reword } from "./nouns.ts";
import { change, distance, rounded, wordsOf, type ComparedText, type Comparison, type Reading } from "./two_maps.ts";

const FIRST_LETTERS = 60; // of a text, in the list

export class MapChooser {
  readonly #data: Comparison;
  readonly #runs: readonly HTMLSelectElement[];
  readonly #search: HTMLInputElement;
  readonly #list: HTMLSelectElement;

  constructor(data: Comparison) {
    this.#data = data;
    this.#runs = [place("first-run", HTMLSelectElement), place("second-run", HTMLSelectElement)];
    this.#search = place("text-search", HTMLInputElement);
    this.#list = place("text-list", HTMLSelectElement);
    for (const [number, select] of this.#runs.entries()) {
      select.append(...data.runs.map((name, i) => element("option", { value: String(i) }, visible(name))));
      select.value = String(number);
      select.addEventListener("change", () => {
        this.#fill();
      });
    }
    this.#search.addEventListener("input", () => {
      this.#fill();
    });
    this.#list.addEventListener("change", () => {
      this.#draw();
    });
    for (const type of ["pointerover", "click"]) {
      place("two-maps", HTMLElement).addEventListener(type, (event) => {
        this.#point(event.target);
      });
    }
    addEventListener("hashchange", () => {
      this.restore();
    });
  }

  /** Choose what the address names, and go there. */
  restore(): void {
    const choice = new URLSearchParams(location.hash.slice(1));
    const wanted = this.#data.texts.findIndex((text) => String(text.id) === choice.get("text"));
    for (const [i, name] of ["first", "second"].entries()) {
      const run = choice.get(name);
      const select = this.#runs[i];
      if (select !== undefined && run !== null && this.#data.runs[Number(run)] !== undefined) select.value = run;
    }
    if (wanted >= 0) this.#search.value = "";
    this.#fill();
    if (wanted < 0) return;
    this.#list.value = String(wanted);
    this.#draw();
    place("maps", HTMLElement).scrollIntoView();
  }

  #readings(text: ComparedText): (Reading | null)[] {
    return this.#runs.map((run) => text.runs[Number(run.value)] ?? null);
  }

  #distance(text: ComparedText): number | null {
    const [first, second] = this.#readings(text);
    return distance(first, second);
  }

  #fill(): void {
    const wanted = this.#search.value.toLowerCase();
    const chosen = this.#list.value;
    const shown = this.#data.texts
      .map((text, i) => ({ text, i, apart: this.#distance(text) }))
      .filter(({ text }) => `${text.name} ${wordsOf(text)}`.toLowerCase().includes(wanted))
      .sort((a, b) => (b.apart ?? -1) - (a.apart ?? -1) || a.i - b.i);
    this.#list.replaceChildren(
      ...shown.map(({ text, i, apart }) => {
        const beginning = wordsOf(text).slice(0, FIRST_LETTERS);
        const words = `${apart === null ? "  –  " : apart.toFixed(3)}  ${text.name}: ${beginning}`;
        return element("option", { value: String(i) }, visible(words));
      }),
    );
    place("text-count", HTMLElement).textContent =
      reword(`${shown.length} of ${this.#data.texts.length} texts, the most different first`);
    if (shown.some(({ i }) => String(i) === chosen)) this.#list.value = chosen;
    else this.#list.selectedIndex = shown.length > 0 ? 0 : -1;
    this.#draw();
  }

  #draw(): void {
    const text = this.#data.texts[Number(this.#list.value)];
    if (this.#list.value === "" || text === undefined) {
      place("two-maps", HTMLElement).replaceChildren(element("p", { class: "hint" }, reword("No text has these letters.")));
      for (const id of ["map-change", "text-name", "word-weights"]) place(id, HTMLElement).textContent = "";
      return;
    }
    const [first, second] = this.#readings(text);
    place("text-name", HTMLElement).textContent = visible(text.name + (text.query !== "" ? `, given: ${text.query}` : ""));
    place("map-change", HTMLElement).textContent = visible(change(first, second));
    place("word-weights", HTMLElement).textContent = reword("Point at a word, or touch it, to see its weights.");
    place("two-maps", HTMLElement).replaceChildren(
      ...this.#runs.map((run) => this.#map(text, Number(run.value))),
    );
    const [one, other] = this.#runs.map((run) => run.value);
    try {
      // Not location.hash, which would scroll and fill the history.
      history.replaceState(null, "", `#text=${text.id}&first=${one}&second=${other}`);
    } catch {
      // A frame of a notebook has no history: the choice is not kept.
    }
  }

  #map(text: ComparedText, run: number): HTMLElement {
    const name = visible(this.#data.runs[run] ?? "");
    const box = element("div", { class: "attention" }, element("h3", {}, name));
    const reading = text.runs[run] ?? null;
    if (reading === null) {
      box.append(element("p", { class: "small" }, reword("This run did not audit the text.")));
      return box;
    }
    const label = reading.label === null ? "" : `, label ${reading.label}`;
    const predicted = `predicted ${reading.predicted} (${rounded(reading.probability)})${label}`;
    box.append(element("p", { class: "small" }, visible(predicted)));
    if (reading.tokens === undefined) {
      const words = reword("The text was read in several windows, each with a map of its own.");
      box.append(element("p", { class: "small" }, words));
      return box;
    }
    const largest = Math.max(0, ...(reading.weights ?? []).map((weight) => weight ?? 0));
    const line = element("p", {
      class: "tokens",
      tabindex: "0",
      role: "group",
      "aria-label": `${reword("the text, shaded by the weights of")} ${name}`,
    });
    for (const [i, token] of reading.tokens.entries()) {
      const weight = reading.weights?.[i] ?? null;
      const word = element("span", { title: rounded(weight), "data-word": String(i) }, visible(token));
      const shade = weight !== null && weight > 0 && largest > 0 ? weight / largest : 0;
      word.style.setProperty("--w", shade.toFixed(3));
      line.append(word, " ");
    }
    box.append(line, element("p", { class: "small" }, `largest weight ${rounded(largest)}`));
    return box;
  }

  #point(target: EventTarget | null): void {
    const word = target instanceof Element ? target.closest<HTMLElement>("[data-word]") : null;
    const text = this.#data.texts[Number(this.#list.value)];
    if (word === null || text === undefined) return;
    const i = Number(word.dataset.word);
    const said = this.#runs.map((run) => {
      const reading = text.runs[Number(run.value)];
      const token = reading?.tokens?.[i];
      const weight = token === undefined ? "–" : `“${token}” ${rounded(reading?.weights?.[i])}`;
      return `${this.#data.runs[Number(run.value)] ?? ""}: ${weight}`;
    });
    place("word-weights", HTMLElement).textContent = visible(said.join("; "));
  }
}

function place<Kind extends HTMLElement>(id: string, kind: abstract new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} #${id}`);
  return found;
}
