// The marks of a figure that draw texts, and the part of a figure that a reader has brushed.
import { channel, drawings, type Datum, type Specification } from "./specification.ts";

type Span = readonly [low: number, high: number];

/** A point, bar or shape, and the texts it draws. */
export interface Mark {
  rows: readonly number[];
  /** Where it stands on the axis; the texts of a shape have places of their own. */
  x: Span;
  xs: readonly number[] | null;
  /** Null where its height is no place: of a bar or a curve. */
  y: Span | null;
  series: string;
  unlisted: number;
}

/** A part of a figure; without `y` its whole height, without `series` all of them. */
export interface Brush {
  figure: string;
  x: Span;
  y: Span | null;
  series: number | null;
}

const ANYWHERE: Span = [-Infinity, Infinity];

/** All marks of texts. Each of their points of data is told the number of its mark, in `link`. */
export function marksOf(spec: Specification): Mark[] {
  const marks: Mark[] = [];
  for (const { kind, data, layer } of drawings(spec)) {
    const fields = ["x", "x2", "y", "y2"].map((name) => channel(layer, name)?.field ?? "");
    const colour = channel(layer, "color")?.field ?? "";
    for (const datum of data) {
      if (datum.rows === undefined || datum.link !== undefined) continue;
      const [x, x2, y, y2] = fields.map((field) => numberOf(datum, field));
      const xs = datum.xs ?? null;
      datum.link = marks.length;
      marks.push({
        rows: datum.rows,
        x: xs === null ? span(x, x2) ?? ANYWHERE : extent(xs),
        xs,
        y: datum.ys ?? (y2 === null && !isPoint(kind) ? null : span(y, y2)),
        series: nameOf(datum[colour]),
        unlisted: datum.unlisted ?? 0,
      });
    }
  }
  return marks;
}

function nameOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isPoint(kind: string): boolean {
  return ["point", "circle"].includes(kind);
}

function numberOf(datum: Datum, field: string): number | null {
  const value = datum[field];
  return typeof value === "number" ? value : null;
}

function span(a: number | null | undefined, b: number | null | undefined): Span | null {
  if (typeof a !== "number") return null;
  return typeof b === "number" ? [Math.min(a, b), Math.max(a, b)] : [a, a];
}

function extent(values: readonly number[]): Span {
  return values.reduce<Span>(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);
}

/** The names of the series, in the order in which a brush counts them. */
export function seriesOf(marks: readonly Mark[]): string[] {
  return [...new Set(marks.map((mark) => mark.series))];
}

/** Whether the height of the figure is no place, so that a brush takes all of it. */
export function isFlat(marks: readonly Mark[]): boolean {
  return marks.some((mark) => mark.y === null);
}

/** The brush that holds one mark: of a bar or curve, this series alone. */
export function around(figure: string, mark: Mark, marks: readonly Mark[]): Brush {
  const series = mark.y === null ? seriesOf(marks).indexOf(mark.series) : null;
  return { figure, x: mark.x, y: mark.y, series };
}

/** The rows of the texts inside a brush. A bar belongs to it if it overlaps. */
export function rowsIn(marks: readonly Mark[], brush: Brush): Set<number> {
  const series = brush.series === null ? null : seriesOf(marks)[brush.series];
  const rows = new Set<number>();
  for (const mark of marks) {
    if (series !== null && mark.series !== series) continue;
    if (brush.y !== null && mark.y !== null && !overlap(mark.y, brush.y)) continue;
    for (const [i, row] of mark.rows.entries()) {
      const place = mark.xs === null ? mark.x : point(mark.xs[i]);
      if (overlap(place, brush.x)) rows.add(row);
    }
  }
  return rows;
}

function point(x: number | undefined): Span {
  return x === undefined ? ANYWHERE : [x, x];
}

/** Spans that only touch do not overlap, unless one is a point. */
function overlap([a, b]: Span, [low, high]: Span): boolean {
  return a === b || low === high ? a <= high && low <= b : a < high && low < b;
}

/** A brush in the address: `FIGURE:x0,x1,y0,y1,series`, where the last three may be empty. */
export function written({ figure, x, y, series }: Brush): string {
  const ends = [...x, ...(y ?? ["", ""]), series ?? ""].map((end) =>
    typeof end === "number" ? String(Number(end.toPrecision(6))) : end,
  );
  return `${figure}:${ends.join(",").replace(/,+$/, "")}`;
}

/** The brush of an address; null if it is none. */
export function read(text: string): Brush | null {
  const cut = text.lastIndexOf(":");
  const ends = text.slice(cut + 1).split(",");
  const [x, y, series] = [pair(ends, 0), pair(ends, 2), number(ends[4])];
  if (cut < 1 || ends.length > 5 || x === null) return null;
  return { figure: text.slice(0, cut), x, y, series };
}

function pair(ends: readonly string[], first: number): Span | null {
  return span(number(ends[first]), number(ends[first + 1]));
}

function number(text: string | undefined): number | null {
  if (text === undefined || text.trim() === "") return null;
  return Number.isNaN(Number(text)) ? null : Number(text);
}
