// All figures whose marks are texts, joined with the table: each shows what is chosen, and chooses.
import type { Links } from "./charts.ts";
import { textOf } from "./columns.ts";
import { grouped, visible } from "./elements.ts";
import { LinkedFigure, type FigureActions } from "./linked_figure.ts";
import { marksOf, read, rowsIn, written, type Brush, type Mark } from "./marks.ts";
import { reword } from "./nouns.ts";
import type { Index } from "./payload.ts";
import { channel, drawings, type Channel, type Layer, type Specification } from "./specification.ts";
import type { View } from "./vega.ts";

const WORDS = 60; // letters of a text that a figure shows

/** What a figure asks of the table. */
export interface TableActions {
  open: (row: number) => void;
  brush: (brush: string, moving: boolean) => void;
}

export class LinkedFigures implements Links {
  readonly names: readonly string[];
  readonly #index: Index;
  readonly #figures = new Map<string, LinkedFigure>();
  #actions: TableActions | null = null;
  #chosen: ReadonlySet<number> | null = null;
  #brush: Brush | null = null;

  constructor(index: Index) {
    this.#index = index;
    this.names = index.name;
  }

  /** Say who opens texts and keeps the brush. */
  join(actions: TableActions): void {
    this.#actions = actions;
  }

  prepare(key: string, spec: Specification): void {
    const marks = marksOf(spec);
    if (marks.length === 0) return;
    for (const { data, layer } of drawings(spec)) {
      let isOfTexts = false;
      for (const datum of data) {
        const mark = typeof datum.link === "number" ? marks[datum.link] : undefined;
        if (mark === undefined) continue;
        isOfTexts = true;
        datum.text_name = visible(this.name(mark));
      }
      if (isOfTexts) nameInTooltip(layer);
    }
    const actions: FigureActions = {
      open: (row) => this.#actions?.open(row),
      brush: (brush, moving) => this.#actions?.brush(brush === null ? "" : written(brush), moving),
      name: (mark) => this.name(mark),
    };
    const figure = new LinkedFigure(key, marks, actions);
    this.#figures.set(key, figure);
    figure.show(this.#chosen, this.#brush);
  }

  drawn(key: string, place: HTMLElement, view: View): void {
    this.#figures.get(key)?.attach(place, view);
  }

  /** The rows of the texts in the brush of an address; null if it names no part of a figure. */
  rowsOf(text: string): ReadonlySet<number> | null {
    const brush = text === "" ? null : read(text);
    const figure = brush === null ? undefined : this.#figures.get(brush.figure);
    return brush === null || figure === undefined ? null : rowsIn(figure.marks, brush);
  }

  /** Show which texts are chosen, and the brush; null if all are. */
  show(chosen: ReadonlySet<number> | null, brush: string): void {
    this.#chosen = chosen;
    this.#brush = brush === "" ? null : read(brush);
    for (const figure of this.#figures.values()) figure.show(chosen, this.#brush);
  }

  /** What a mark draws, in words. */
  name(mark: Mark): string {
    const [row] = mark.rows;
    if (mark.rows.length === 1 && mark.unlisted === 0 && row !== undefined) {
      const text = textOf(this.#index, row);
      const letters = Array.from(text);
      return `${this.names[row] ?? ""}: ${letters.length > WORDS ? `${letters.slice(0, WORDS).join("")}…` : text}`;
    }
    const count = mark.rows.length + mark.unlisted;
    const words = reword(`${grouped(count)} ${count === 1 ? "text" : "texts"}`);
    return mark.unlisted === 0 ? words : `${words}, of which the table has ${grouped(mark.rows.length)}`;
  }
}

/** Let a layer's tooltip begin with the text, and have the numbers that are drawn. */
function nameInTooltip(layer: Layer): void {
  const shown = layer.encoding?.tooltip;
  const numbers = ["x", "y"].flatMap((name) => channel(layer, name) ?? []).map(({ field, type, title }) => ({
    ...(field === undefined ? {} : { field }),
    ...(type === undefined ? {} : { type }),
    title: Array.isArray(title) ? title.join(" ") : (title ?? field ?? ""),
  }));
  const rest: Channel[] = shown === undefined ? numbers : Array.isArray(shown) ? shown : [shown];
  layer.encoding = { ...layer.encoding, tooltip: [{ field: "text_name", type: "nominal", title: reword("text") }, ...rest] };
}
