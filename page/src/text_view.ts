// One text: all its maps as bars under its words, on one axis, with the numbers of the word in focus.
import { moved } from "./arrow_keys.ts";
import { rightness } from "./columns.ts";
import { chip, element, fixed, visible } from "./elements.ts";
import { reword } from "./nouns.ts";
import { classOf, type Index, type TextMap } from "./payload.ts";
import { balancedLines, decimalsOf } from "./word_lines.ts";

const AGAINST = "Hatched bars speak against the answer: without the word it is likelier.";
const SMALLER = "Hatched bars make the output smaller: without the word it is larger.";

export interface ViewActions {
  address: (row: number) => string;
  close: () => void;
  /** Pin this text, so that the next one opens beside it; undo it where it is pinned. */
  pin: () => void;
  isPinned: boolean;
  /** What the model would predict under other weights. */
  whatIf: HTMLElement;
}

/** Show one text. The element must be in the page before `layOut` is called, which needs its width. */
export class TextView {
  readonly root: HTMLElement;
  readonly #groups: MapGroup[];

  constructor(index: Index, row: number, maps: readonly TextMap[], actions: ViewActions) {
    this.root = element("article", { class: "instance opened", "aria-label": `${reword("Text")} ${index.name[row] ?? ""}` });
    this.root.append(heading(index, row, actions), ...about(index, row));
    const query = index.query?.[row];
    if (query !== undefined) this.root.append(element("p", { class: "query" }, element("bdi", {}, words(query))));
    const struck = new Set(index.smallest?.sets[row]);
    const sign = index.unit === undefined ? AGAINST : SMALLER;
    this.#groups = byTokens(maps).map((group) => new MapGroup(group, isOfText(index, row, group) ? struck : new Set(), sign));
    this.root.append(...smallestSet(index, row), ...this.#groups.map((group) => group.root), actions.whatIf);
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") actions.close();
    });
  }

  /** Give the focus to the heading, from where a reader goes on. */
  focus(): void {
    this.root.querySelector<HTMLElement>("h3")?.focus({ preventScroll: true });
  }

  layOut(): void {
    for (const group of this.#groups) group.layOut();
  }
}

// Where it is wider than its place it scrolls, by keyboard too.
const OVER = { class: "over", tabindex: "0", role: "group", "aria-label": "The maps and their scales" };

/** The maps of the same words: a legend, and lines of words with a bar per map below each. */
class MapGroup {
  readonly root: HTMLElement;
  readonly #maps: readonly TextMap[];
  readonly #tokens: readonly string[];
  readonly #struck: ReadonlySet<number>;
  readonly #lines: HTMLElement;
  readonly #word: HTMLElement;
  readonly #numbers: HTMLElement[];
  #width = 0;
  #focus = 0;

  constructor(maps: readonly TextMap[], struck: ReadonlySet<number>, sign: string) {
    this.#maps = maps;
    this.#struck = struck;
    this.#tokens = (maps[0]?.tokens ?? []).map(visible);
    this.#word = element("span", { class: "word" }, reword("point at a word"));
    this.#numbers = maps.map(() => element("td", { class: "of-number" }, ""));
    const legend = element(
      "table",
      { class: "legend" },
      element("thead", {}, element("tr", {}, ...["map", "scale"].map(columnHead), columnHead(this.#word))),
      element("tbody", {}, ...maps.map((map, i) => this.#legendRow(map, i))),
    );
    this.#lines = element("div", { class: "lines" });
    const signs = maps.some((map) => map.signed && map.values !== null)
      ? [element("p", { class: "small signs" }, reword(sign))]
      : [];
    this.root = element("div", { class: "maps" }, element("div", OVER, legend, ...signs), this.#lines);
    for (const type of ["pointerover", "focusin", "click"]) {
      this.#lines.addEventListener(type, (event) => {
        this.#choose(event.target);
      });
    }
    this.#lines.addEventListener("keydown", (event) => {
      this.#onKey(event);
    });
  }

  /** Break the words into lines of the width that there is. */
  layOut(): void {
    const width = this.#lines.clientWidth;
    if (width === this.#width || width === 0) return;
    this.#width = width;
    const label = width >= 640 ? 150 : 24;
    const font = getComputedStyle(this.#lines).font;
    const lines = balancedLines(widthsOf(this.#tokens, font), width - label);
    this.#lines.replaceChildren(...lines.map(({ first, widths }) => this.#line(first, widths, label)));
  }

  #legendRow(map: TextMap, i: number): HTMLElement {
    const name = element("th", { scope: "row" }, element("b", {}, String(i + 1)), ` ${visible(reword(map.name))}`);
    const scale = element("td", { class: "scale-of" });
    if (map.values === null) {
      scale.append(map.tokens.length === 1 ? reword("not defined for a text of one word") : "none: not sampled, or not defined");
    } else if (map.kind === "marks") {
      scale.append(element("i", { class: "marks" }), "marked");
    } else {
      const largest = fixed(map.largest, decimalsOf(map.largest));
      if (map.signed) scale.append(element("i", { class: "contrary" }));
      scale.append(element("i", { class: map.kind }), `${map.signed ? `−${largest}` : "0"} to ${largest}`);
    }
    return element("tr", {}, name, scale, this.#numbers[i] ?? "");
  }

  #line(first: number, widths: readonly number[], label: number): HTMLElement {
    const columns = [label, ...widths].map((width) => {
      const column = element("col");
      column.style.width = `${width}px`;
      return column;
    });
    const head = widths.map((_, i) => this.#wordHead(first + i));
    const rows = this.#maps.flatMap((map, m) => {
      if (map.values === null) return [];
      const name = element(
        "th",
        { scope: "row", title: reword(map.name) },
        element("b", {}, String(m + 1)),
        label > 24 ? ` ${visible(reword(map.name))}` : "",
      );
      return [element("tr", {}, name, ...widths.map((_, i) => bar(map, first + i)))];
    });
    const table = element(
      "table",
      { class: "line" },
      element("colgroup", {}, ...columns),
      element("thead", {}, element("tr", {}, element("td"), ...head)),
      element("tbody", {}, ...rows),
    );
    table.style.width = `${[label, ...widths].reduce((sum, width) => sum + width, 0)}px`;
    return table;
  }

  #wordHead(place: number): HTMLElement {
    const token = this.#tokens[place] ?? "";
    const head = element(
      "th",
      { scope: "col", tabindex: place === this.#focus ? "0" : "-1", "data-word": String(place) },
      this.#struck.has(place) ? element("s", {}, element("bdi", {}, token)) : element("bdi", {}, token),
    );
    const [map] = this.#maps;
    if (map?.values) head.style.setProperty("--w", String(share(map, place)));
    head.classList.toggle("gold", this.#maps.some((m) => m.kind === "marks" && (m.values?.[place] ?? 0) > 0));
    return head;
  }

  #choose(target: EventTarget | null): void {
    const cell = target instanceof Element ? target.closest<HTMLElement>("[data-word]") : null;
    if (cell === null) return;
    const place = Number(cell.dataset.word);
    for (const other of this.#lines.querySelectorAll(".chosen")) other.classList.remove("chosen");
    for (const same of this.#lines.querySelectorAll(`[data-word="${place}"]`)) same.classList.add("chosen");
    this.#word.replaceChildren(element("bdi", {}, this.#tokens[place] ?? ""));
    for (const [i, map] of this.#maps.entries()) {
      this.#numbers[i]?.replaceChildren(valueText(map, place));
    }
  }

  #onKey(event: KeyboardEvent): void {
    const place = moved(event.key, this.#focus, this.#tokens.length - 1);
    if (place === null || !(event.target instanceof HTMLElement) || event.target.tagName !== "TH") return;
    event.preventDefault();
    this.#head(this.#focus)?.setAttribute("tabindex", "-1");
    this.#focus = place;
    this.#head(this.#focus)?.setAttribute("tabindex", "0");
    this.#head(this.#focus)?.focus();
  }

  #head(place: number): HTMLElement | null {
    return this.#lines.querySelector<HTMLElement>(`th[data-word="${place}"]`);
  }
}

function columnHead(content: string | Node): HTMLElement {
  return element("th", { scope: "col" }, content);
}

function bar(map: TextMap, place: number): HTMLElement {
  const against = (map.values?.[place] ?? 0) < 0;
  const cell = element("td", {
    class: against ? "contrary" : map.kind,
    "data-word": String(place),
    "aria-label": valueText(map, place),
  });
  cell.style.setProperty("--v", String(share(map, place)));
  return cell;
}

function share(map: TextMap, place: number): number {
  const value = Math.abs(map.values?.[place] ?? 0);
  return map.largest > 0 ? Math.round((1000 * value) / map.largest) / 1000 : 0;
}

function valueText(map: TextMap, place: number): string {
  const value = map.values?.[place];
  if (value === undefined) return "–";
  if (map.kind === "marks") return value > 0 ? "marked" : "not marked";
  return fixed(value, decimalsOf(map.largest));
}

function byTokens(maps: readonly TextMap[]): TextMap[][] {
  const groups = new Map<string, TextMap[]>();
  for (const map of maps) {
    const key = map.tokens.join("\n");
    groups.set(key, [...(groups.get(key) ?? []), map]);
  }
  return [...groups.values()];
}

function isOfText(index: Index, row: number, [map]: readonly TextMap[]): boolean {
  return map?.tokens.join("\n") === index.tokens[row]?.join("\n");
}

/** What the words that are struck through are; nothing is said where the audit did not ask. */
function smallestSet(index: Index, row: number): HTMLElement[] {
  if (index.smallest === null) return [];
  const { exact, sets } = index.smallest;
  const places = sets[row] ?? null;
  if (places === null) {
    if ((index.tokens[row] ?? []).length < 2) return [];
    const none = exact
      ? "No set of words changes the answer when their weights are erased."
      : "No words were found whose erased weights change the answer.";
    return [element("p", { class: "small" }, reword(none))];
  }
  const named = places.map((place) => `“${visible(index.tokens[row]?.[place] ?? "")}”`).join(", ");
  const which = exact
    ? "the smallest set of words whose erased weights change the answer"
    : "the fewest words found whose erased weights change the answer";
  const text = element("bdi", {}, `${places.length <= 8 ? `: ${named}` : reword(` (${places.length} words)`)}.`);
  return [element("p", { class: "small struck" }, element("s", {}, "Struck through"), ` is ${reword(which)}`, text)];
}

function widthsOf(tokens: readonly string[], font: string): number[] {
  const context = document.createElement("canvas").getContext("2d");
  if (context === null) return tokens.map((token) => 9 * token.length);
  context.font = font;
  return tokens.map((token) => context.measureText(token).width);
}

function heading(index: Index, row: number, actions: ViewActions): HTMLElement {
  const name = element("a", { href: actions.address(row) }, visible(index.name[row] ?? ""));
  const pin = element(
    "button",
    { type: "button", "aria-pressed": String(actions.isPinned) },
    actions.isPinned ? "Unpin" : "Pin, to compare",
  );
  pin.addEventListener("click", actions.pin);
  const close = element("button", { type: "button" }, "Close");
  close.addEventListener("click", actions.close);
  return element("header", { class: "of-text" }, element("h3", { tabindex: "-1" }, name), pin, close);
}

function about(index: Index, row: number): HTMLElement[] {
  const parts: HTMLElement[] = [];
  for (const example of index.examples.filter((candidate) => candidate.row === row)) {
    parts.push(element("p", {}, element("b", {}, `${visible(example.title)}. `), visible(example.reason)));
  }
  const line = element("p", { class: "small" });
  const correct = rightness(index, row);
  const label = index.label[row] ?? null;
  if (correct !== null && label !== null) {
    line.append(chip(correct === "right" ? "for" : "against", correct), " ");
    const expected = index.expected[row];
    line.append(
      correct === "right" || typeof expected !== "number"
        ? pair("label", className(index, row, label))
        : pair("label", className(index, row, label), ` with probability ${fixed(expected, 3)}`),
    );
  }
  const candidates = index.candidates?.[row];
  const choices = index.choices?.[row]?.map(visible);
  const among =
    choices !== undefined
      ? `, of the words “${choices.join("” and “")}”`
      : candidates === undefined
        ? ""
        : ` among ${candidates} candidates`;
  const confidence = fixed(index.confidence[row] ?? 0, 3);
  const predicted = className(index, row, index.predicted[row] ?? 0);
  line.append(
    index.unit === undefined
      ? pair("predicted", predicted, ` with probability ${confidence}${among}`)
      : pair("output", `${confidence} ${visible(index.unit)}`),
  );
  const level = index.level?.[row];
  if (level !== undefined) line.append(element("span", { class: "pair" }, "level ", chip(level)));
  parts.push(line);
  const facts = element("p", { class: "small" });
  for (const { name, values } of index.facts) {
    const value = values[row] ?? null;
    if (value !== null) facts.append(pair(reword(name), fixed(value, Number.isInteger(value) ? 0 : 3)));
  }
  parts.push(element("details", {}, element("summary", {}, reword("The numbers of this text")), facts));
  return parts;
}

function className(index: Index, row: number, number: number): string {
  return visible(classOf(index, row, number) ?? "");
}

function pair(name: string, value: string, rest = ""): HTMLElement {
  return element("span", { class: "pair" }, `${name} `, element("b", {}, element("bdi", {}, value)), rest);
}

function words(tokens: readonly string[]): string {
  return tokens.map(visible).join(" ");
}
