// The table of all texts. Only the rows in sight are elements; the grid keeps the focus and names its active row.
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { Column } from "./columns.ts";
import { chip, element, fixed, visible } from "./elements.ts";
import { reword } from "./nouns.ts";

export interface TableActions {
  sort: (column: string) => void;
  open: (row: number) => void;
  address: (row: number) => string;
  /** Close the text that is open. */
  close: () => void;
}

const PAGE = 10; // rows that Page Up and Page Down move by
const NARROW = matchMedia("(max-width: 45rem)");

export class TextTable {
  readonly root: HTMLElement;
  readonly #body: HTMLElement;
  readonly #space: HTMLElement;
  readonly #head: HTMLElement;
  readonly #actions: TableActions;
  readonly #all: readonly number[];
  readonly #virtual: Virtualizer<HTMLElement, HTMLElement>;
  #columns: readonly Column[] = [];
  #rows: readonly number[] = [];
  #active = 0;
  #open: readonly number[] = [];

  constructor(texts: number, actions: TableActions) {
    this.#all = Array.from({ length: texts }, (_, row) => row);
    this.#actions = actions;
    this.#space = element("div", { class: "space", role: "presentation" });
    this.#body = element("div", { class: "body", role: "rowgroup" }, this.#space);
    this.#head = element("div", { class: "line head", role: "row", "aria-rowindex": "1" });
    this.root = element(
      "div",
      { class: "table", role: "grid", tabindex: "0", "aria-label": reword("All audited texts") },
      element("div", { role: "rowgroup" }, this.#head),
      this.#body,
    );
    this.root.addEventListener("keydown", (event) => {
      this.#onKey(event);
    });
    this.#virtual = new Virtualizer<HTMLElement, HTMLElement>(this.#options());
    this.#virtual._didMount();
    NARROW.addEventListener("change", () => {
      this.#virtual.measure();
      this.#update();
    });
  }

  /** Show these rows; `open` are the texts that are open below. */
  show(columns: readonly Column[], rows: readonly number[], sort: string, open: readonly number[]): void {
    const same = rows.length === this.#rows.length && rows.every((row, i) => row === this.#rows[i]);
    this.#columns = columns;
    this.#rows = rows;
    this.#open = open;
    if (!same) {
      this.#active = 0;
      this.#body.scrollTop = 0;
    }
    this.root.setAttribute("aria-rowcount", String(rows.length + 1));
    this.root.setAttribute("aria-colcount", String(columns.length));
    this.#showHead(sort);
    this.#update();
  }

  /** Give the focus to the table, and let a text's row be the active one, if it is shown. */
  focus(row: number): void {
    const place = this.#rows.indexOf(row);
    if (place >= 0) this.#move(place);
    this.root.focus({ preventScroll: true });
  }

  #move(place: number): void {
    this.#active = place;
    this.#virtual.scrollToIndex(place, { align: "auto" });
    this.#draw();
  }

  #options(): ConstructorParameters<typeof Virtualizer<HTMLElement, HTMLElement>>[0] {
    return {
      count: this.#rows.length,
      getScrollElement: () => this.#body,
      estimateSize: () => (NARROW.matches ? 84 : 36),
      overscan: 8,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: () => {
        this.#draw();
      },
    };
  }

  #update(): void {
    this.#virtual.setOptions({ ...this.#virtual.options, ...this.#options() });
    this.#virtual._willUpdate();
    this.#draw();
  }

  #showHead(sort: string): void {
    const focused = this.#head.contains(document.activeElement)
      ? document.activeElement?.getAttribute("data-column")
      : null;
    const template = this.#columns.map((column) => WIDTHS[column.id] ?? `${this.#longest(column)}rem`).join(" ");
    this.root.style.setProperty("--columns", template);
    this.#head.replaceChildren(
      ...this.#columns.map((column, i) => {
        const direction = sort === column.id ? "ascending" : sort === `-${column.id}` ? "descending" : "none";
        const sign = { ascending: "▲", descending: "▼", none: "" }[direction];
        const button = element(
          "button",
          { type: "button", "data-column": column.id, title: `${column.meaning} A click sorts by it.` },
          column.title,
          element("span", { class: "direction", "aria-hidden": "true" }, sign),
        );
        button.addEventListener("click", () => {
          this.#actions.sort(column.id);
        });
        const attributes = { role: "columnheader", "aria-sort": direction, "aria-colindex": String(i + 1) };
        return element("div", { ...attributes, class: cellClass(column) }, button);
      }),
    );
    if (focused !== null && focused !== undefined) {
      this.#head.querySelector<HTMLElement>(`[data-column="${CSS.escape(focused)}"]`)?.focus();
    }
  }

  /** About as wide as the longest text of a column, in rem. */
  #longest(column: Column): number {
    if (column.decimals !== undefined) return 8;
    let longest = column.title.length + 2;
    for (const row of this.#all) longest = Math.max(longest, String(column.value(row) ?? "").length);
    return Math.min(10, 0.5 + longest / 2);
  }

  #draw(): void {
    this.#space.style.height = `${this.#virtual.getTotalSize()}px`;
    this.#space.replaceChildren(
      ...this.#virtual.getVirtualItems().map((item) => {
        const line = this.#line(item.index);
        line.style.transform = `translateY(${item.start}px)`;
        line.style.height = `${item.size}px`;
        return line;
      }),
    );
    if (this.#rows.length > 0) this.root.setAttribute("aria-activedescendant", lineId(this.#active));
    else this.root.removeAttribute("aria-activedescendant");
  }

  #line(place: number): HTMLElement {
    const row = this.#rows[place] ?? 0;
    const line = element("div", {
      id: lineId(place),
      class: "line",
      role: "row",
      "aria-rowindex": String(place + 2),
      "aria-selected": String(this.#open.includes(row)),
    });
    line.classList.toggle("active", place === this.#active);
    line.append(...this.#columns.map((column, i) => this.#cell(column, row, i)));
    line.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the link opens a tab of its own
      event.preventDefault();
      this.#active = place;
      this.#actions.open(row);
    });
    return line;
  }

  #cell(column: Column, row: number, place: number): HTMLElement {
    const value = column.value(row);
    const cell = element("div", {
      role: "gridcell",
      class: cellClass(column),
      "aria-colindex": String(place + 1),
    });
    if (column.id === "name") {
      const link = element("a", { href: this.#actions.address(row), tabindex: "-1" }, visible(String(value)));
      cell.append(link);
    } else if (value === null) {
      cell.append("–");
    } else if (typeof value === "number") {
      cell.append(fixed(value, column.decimals ?? 3));
    } else if (column.id === "level") {
      cell.append(chip(value));
    } else if (column.id === "right") {
      cell.append(chip(value === "right" ? "for" : "against", value));
    } else {
      const text = visible(value);
      cell.append(text);
      cell.setAttribute("dir", "auto");
      if (column.id === "text") cell.setAttribute("title", text.slice(0, 1000));
    }
    return cell;
  }

  #onKey(event: KeyboardEvent): void {
    if (event.target !== this.root || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.#rows.length - 1;
    const moves: Record<string, number> = {
      ArrowDown: this.#active + 1,
      ArrowUp: this.#active - 1,
      PageDown: this.#active + PAGE,
      PageUp: this.#active - PAGE,
      Home: 0,
      End: last,
    };
    const place = moves[event.key];
    const row = this.#rows[this.#active];
    if (place !== undefined) {
      this.#move(Math.max(0, Math.min(place, last)));
    } else if (event.key === "Enter" && row !== undefined) {
      this.#actions.open(row);
    } else if (event.key === "Escape" && this.#open.length > 0) {
      this.#actions.close();
    } else {
      return;
    }
    event.preventDefault();
  }
}

const WIDTHS: Record<string, string> = {
  text: "minmax(10rem, 1fr)",
  right: "5rem",
  confidence: "6.2rem",
  length: "3.8rem",
  level: "7.4rem",
};

function lineId(place: number): string {
  return `text-line-${place}`;
}

/** Columns that every table has; a text's numbers have names of any kind. */
function isOfAll(column: Column): boolean {
  return column.id in WIDTHS || ["name", "predicted", "label"].includes(column.id);
}

function cellClass(column: Column): string {
  const number = column.decimals === undefined ? "" : "of-number";
  return isOfAll(column) ? `of-${column.id} ${number}`.trim() : number;
}
