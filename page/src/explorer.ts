// All texts of the page: filters, the table, and the opened texts; the address holds what is chosen.
import { Blocks } from "./blocks.ts";
import { columnMeanings, levelMarks } from "./column_meanings.ts";
import { columns, type Column } from "./columns.ts";
import { element, grouped, visible } from "./elements.ts";
import { Filters } from "./filters.ts";
import type { LinkedFigures } from "./linked_figures.ts";
import { reword } from "./nouns.ts";
import { readBlock, type Index, type TextMap } from "./payload.ts";
import { layOutForPrint } from "./printing.ts";
import { readReadOuts } from "./read_outs.ts";
import { anchors, searchable, select, type Searched } from "./selection.ts";
import { nextSort } from "./sorting.ts";
import { DEFAULT, fromHash, toHash, unfiltered, type State } from "./state.ts";
import { TextTable } from "./text_table.ts";
import { TextView } from "./text_view.ts";
import { impossible, unknown } from "./unknown.ts";
import { WhatIf } from "./what_if.ts";

const TYPING = 150; // milliseconds without a key, after which the address is written

export class Explorer {
  readonly #index: Index;
  readonly #maps: Blocks<TextMap[]>;
  readonly #whatIf: WhatIf;
  readonly #columns: readonly Column[];
  readonly #fixed: number;
  readonly #words: readonly Searched[];
  readonly #anchors: readonly string[];
  readonly #filters: Filters;
  readonly #table: TextTable;
  readonly #figures: LinkedFigures;
  readonly #opened = element("div", { class: "opened-texts" });
  #state: State = { ...DEFAULT };
  #shown = "";
  #entered = ""; // the anchor of the text that takes the focus when it is shown
  #views: TextView[] = [];
  #timer = 0;

  constructor(
    root: HTMLElement,
    index: Index,
    packed: readonly string[],
    readOuts: readonly string[],
    figures: LinkedFigures,
  ) {
    this.#index = index;
    this.#figures = figures;
    figures.join({
      open: (row) => {
        this.#enter(row);
      },
      brush: (brush, moving) => {
        this.#choose({ brush }, moving);
      },
    });
    this.#maps = new Blocks(index, packed, readBlock);
    this.#whatIf = new WhatIf(index, new Blocks(index, readOuts, readReadOuts));
    this.#columns = columns(index);
    this.#fixed = this.#columns.length - index.facts.length;
    this.#words = searchable(index);
    this.#anchors = anchors(index);
    const sortable = this.#columns.flatMap(({ id, title, decimals }): [string, string][] => [
      [id, decimals === undefined ? `${title}, A to Z` : `${title}, smallest first`],
      [`-${id}`, decimals === undefined ? `${title}, Z to A` : `${title}, largest first`],
    ]);
    this.#filters = new Filters(
      index,
      index.facts.map((fact) => fact.name),
      sortable,
      (field, value, typing) => {
        this.#choose({ [field]: value }, typing);
      },
      () => {
        this.#choose(unfiltered({ ...this.#state, sort: "", show: "" }));
      },
    );
    this.#table = new TextTable(index.tokens.length, {
      sort: (column) => {
        this.#choose({ sort: nextSort(this.#state.sort, column, this.#isNumber(column)) });
      },
      open: (row) => {
        this.#enter(row);
      },
      close: () => {
        this.#choose(this.#state.text === "" ? { pin: "" } : { text: "" });
      },
      address: (row) => toHash({ ...this.#state, text: this.#anchors[row] ?? "" }),
    });
    const marks = index.level === null ? [] : [levelMarks()];
    root.append(...this.#telling(), this.#filters.root, ...marks, this.#table.root);
    root.append(columnMeanings(this.#columns), this.#opened);
    const layOut = (): void => {
      for (const view of this.#views) view.layOut();
    };
    new ResizeObserver(layOut).observe(this.#opened);
    layOutForPrint(this.#opened, layOut);
    addEventListener("popstate", () => {
      this.#restore();
    });
  }

  /** Show what the address says; an address of something else changes nothing. */
  start(): void {
    this.#state = fromHash(location.hash) ?? { ...DEFAULT };
    this.#show();
    const { text, pin, ...choice } = this.#state;
    if (text + pin === "" && Object.values(choice).some(Boolean)) this.#filters.root.scrollIntoView();
  }

  /** Open a text, and give it the focus. */
  #enter(row: number): void {
    this.#entered = this.#anchors[row] ?? "";
    this.#choose({ text: this.#entered });
  }

  #restore(): void {
    const state = fromHash(location.hash);
    if (state === null) return;
    this.#state = state;
    this.#show();
  }

  /** Change a part of the state: a step back undoes it, but not each letter that is typed. */
  #choose(change: Partial<State>, typing = false): void {
    const next = { ...this.#state, ...change };
    if (toHash(next) === toHash(this.#state)) {
      this.#show();
      return;
    }
    clearTimeout(this.#timer);
    if (typing) {
      this.#timer = window.setTimeout(() => {
        history.replaceState(null, "", toHash(this.#state));
      }, TYPING);
    } else {
      history.pushState(null, "", toHash(next));
    }
    this.#state = next;
    this.#show();
  }

  #show(): void {
    const brushed = this.#figures.rowsOf(this.#state.brush);
    const rows = select(this.#index, this.#columns, this.#words, this.#state, brushed);
    const all = this.#index.tokens.length;
    const here = this.#index.total > all ? " of this page" : "";
    const count = reword(`${rows.length === all ? "All" : `${grouped(rows.length)} of`} ${grouped(all)} texts${here}`);
    const status = brushed === null ? count : `${count}, with a selection in a figure`;
    const reasons = [...unknown(this.#state, this.#index, this.#columns, this.#anchors), ...impossible(this.#state)];
    this.#filters.show(this.#state, [status, ...reasons].join(". ") + (reasons.length > 0 ? "." : ""));
    this.#figures.show(rows.length === all ? null : new Set(rows), this.#state.brush);
    const open = [this.#state.pin, this.#state.text].flatMap((anchor) => {
      const row = anchor === "" ? -1 : this.#anchors.indexOf(anchor);
      return row < 0 ? [] : [row];
    });
    const extra = this.#columns.slice(this.#fixed).filter((column) => this.#isShown(column.id));
    this.#table.show([...this.#columns.slice(0, this.#fixed), ...extra], rows, this.#state.sort, open);
    void this.#open([...new Set(open)]);
  }

  /** A number has a column where it is asked for, or sorted by. */
  #isShown(id: string): boolean {
    return id === this.#state.show || id === this.#state.sort || `-${id}` === this.#state.sort;
  }

  #isNumber(id: string): boolean {
    return this.#columns.find((column) => column.id === id)?.decimals !== undefined;
  }

  async #open(rows: readonly number[]): Promise<void> {
    const { text, pin } = this.#state;
    const shown = JSON.stringify([rows, text, pin]);
    if (shown === this.#shown) {
      this.#focusEntered(rows);
      return;
    }
    this.#shown = shown;
    const maps = await Promise.all(rows.map((row) => this.#maps.of(row)));
    if (shown !== this.#shown) return; // another text was opened meanwhile
    const isNew = (row: number): boolean => this.#anchors[row] === text;
    this.#views = rows.map((row, i) => this.#view(row, maps[i] ?? []));
    this.#opened.replaceChildren(...this.#views.map((view) => view.root));
    this.#opened.classList.toggle("two", rows.length > 1);
    this.#opened.classList.toggle("any", rows.length > 0);
    for (const view of this.#views) view.layOut();
    const place = rows.findIndex(isNew);
    this.#focusEntered(rows);
    this.#views[Math.max(0, place)]?.root.scrollIntoView({ block: "nearest" });
  }

  #focusEntered(rows: readonly number[]): void {
    const place = rows.findIndex((row) => this.#anchors[row] === this.#entered);
    if (place < 0 || this.#views[place] === undefined) return;
    this.#views[place].focus();
    this.#entered = "";
  }

  #view(row: number, maps: readonly TextMap[]): TextView {
    const anchor = this.#anchors[row] ?? "";
    const isPinned = anchor === this.#state.pin;
    return new TextView(this.#index, row, maps, {
      address: (other) => toHash({ ...DEFAULT, text: this.#anchors[other] ?? "" }),
      isPinned,
      whatIf: this.#whatIf.of(row),
      pin: () => {
        this.#entered = anchor;
        this.#choose(isPinned ? { pin: "" } : { pin: anchor });
      },
      close: () => {
        const { text, pin } = this.#state;
        this.#choose({ text: text === anchor ? "" : text, pin: pin === anchor ? "" : pin });
        this.#table.focus(row);
      },
    });
  }

  /** Links to the texts that were chosen by rule. */
  #telling(): HTMLElement[] {
    if (this.#index.examples.length === 0) return [];
    const links = this.#index.examples.map(({ row, title, reason }) => {
      const state = { ...DEFAULT, text: this.#anchors[row] ?? "" };
      const link = element("a", { href: toHash(state), title: visible(reason) }, visible(title));
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the link opens a tab of its own
        event.preventDefault();
        this.#entered = state.text;
        this.#choose(state);
      });
      return link;
    });
    const list = element("ul", { class: "telling" }, ...links.map((link) => element("li", {}, link)));
    return [element("p", { class: "hint" }, "The most telling ones, chosen by rule and not by hand:"), list];
  }
}
