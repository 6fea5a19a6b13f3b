import { expect, it } from "vitest";
import { drawnTable, toCsv } from "../src/csv.ts";
import type { Specification } from "../src/specification.ts";

const names = ["id 0", "id 1", 'id "2", last'];

it("writes a line per point, and names its text", () => {
  const values = [
    { x: 1, y: 0.5, rows: [2], link: 0, text_name: "for the page" },
    { x: 2, y: null, rows: [0] },
  ];
  const spec: Specification = { data: { values }, mark: "circle", encoding: { x: { field: "x" } } };
  expect(toCsv(drawnTable(spec, names))).toBe('mark,x,y,texts,text\ncircle,1,0.5,1,"id ""2"", last"\ncircle,2,,1,id 0\n');
  expect(drawnTable(spec, null)[0]).toEqual(["mark", "x", "y"]);
});

it("writes the texts of a bin in one line, and those of a curve in lines of their own", () => {
  const spec: Specification = {
    datasets: {
      bins: [{ series: "a", start: 0, end: 1, rows: [0, 1], unlisted: 3 }],
      curve: [{ series: "b", t: -1, density: 0, rows: [1], xs: [0.25] }],
    },
    layer: [
      { mark: "bar", data: { name: "bins" }, encoding: { x: { field: "start" } } },
      { mark: "bar", data: { name: "bins" } },
      { mark: { type: "line" }, data: { name: "curve" }, encoding: { x: { field: "t" } } },
    ],
  };
  expect(drawnTable(spec, names)).toEqual([
    ["mark", "series", "start", "end", "texts", "text", "t", "density"],
    ["bar", "a", 0, 1, 5, "id 0; id 1", null, null],
    ["line", "b", null, null, null, null, -1, 0],
    ["text", "b", null, null, 1, "id 1", 0.25, null],
  ]);
});

it("leaves numbers alone, and gives no spreadsheet a formula", () => {
  expect(toCsv([[-0.5, "=1+1", "-x", "a\nb", null, "שלום"]])).toBe(`-0.5,'=1+1,'-x,"a\nb",,שלום\n`);
});
