// What a figure draws, as CSV.
import { drawings, type Datum, type Specification } from "./specification.ts";

type Cell = string | number | null;

// For the page's own use, or the same as `text` and `texts`.
const HIDDEN = new Set(["rows", "xs", "ys", "link", "unlisted", "text_name"]);

/** One line per point of data that is drawn. `names` are those of the texts; without them there is no such column. */
export function drawnTable(spec: Specification, names: readonly string[] | null): Cell[][] {
  const lines: Record<string, Cell>[] = [];
  const seen = new Set<Datum[]>();
  for (const { kind, data, layer } of drawings(spec)) {
    if (seen.has(data)) continue;
    seen.add(data);
    const x = layer.encoding?.x;
    const axis = x === undefined || Array.isArray(x) ? "x" : (x.field ?? "x");
    for (const datum of data) {
      const values = Object.entries(datum).filter(([field]) => !HIDDEN.has(field));
      const line: Record<string, Cell> = { mark: kind, ...Object.fromEntries(values.map(([field, value]) => [field, cell(value)])) };
      const { rows, xs } = datum;
      if (names === null || rows === undefined) {
        lines.push(line);
      } else if (xs === undefined) {
        const named = rows.map((row) => names[row] ?? "").join("; ");
        lines.push({ ...line, texts: rows.length + (datum.unlisted ?? 0), text: named });
      } else {
        lines.push(line);
        const series: Record<string, Cell> = "series" in line ? { series: line.series ?? null } : {};
        for (const [i, row] of rows.entries()) {
          lines.push({ mark: "text", ...series, [axis]: xs[i] ?? null, texts: 1, text: names[row] ?? "" });
        }
      }
    }
  }
  const columns = [...new Set(lines.flatMap((line) => Object.keys(line)))];
  return [columns, ...lines.map((line) => columns.map((column) => line[column] ?? null))];
}

function cell(value: unknown): Cell {
  return value === null || typeof value === "number" || typeof value === "string" ? value : JSON.stringify(value);
}

/** Write lines as CSV. A text that a spreadsheet would take for a formula gets an apostrophe. */
export function toCsv(lines: readonly (readonly Cell[])[]): string {
  return lines.map((line) => `${line.map(written).join(",")}\n`).join("");
}

function written(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
