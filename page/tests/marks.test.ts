import { describe, expect, it } from "vitest";
import { around, isFlat, marksOf, read, rowsIn, written, type Brush } from "../src/marks.ts";
import type { Specification } from "../src/specification.ts";

function histogram(): Specification {
  const bars = [
    { series: "a", start: 0, end: 0.5, share: 0.25, rows: [4] },
    { series: "a", start: 0.5, end: 1, share: 0.75, rows: [0, 1, 7] },
    { series: "b", start: 0.5, end: 1, share: 1, rows: [2] },
  ];
  return {
    datasets: { bars, guide: [{ at: 0 }] },
    layer: [
      { mark: "rule", data: { name: "guide" }, encoding: { x: { field: "at" } } },
      {
        mark: { type: "bar" },
        data: { name: "bars" },
        encoding: { x: { field: "start" }, x2: { field: "end" }, y: { field: "share" }, color: { field: "series" } },
      },
    ],
  };
}

function scatter(): Specification {
  const data = [
    { x: 1, y: 10, rows: [0] },
    { x: 2, y: -1, rows: [1, 2] },
    { x: 2, y: 5, rows: [3] },
  ];
  return { data: { values: data }, mark: "circle", encoding: { x: { field: "x" }, y: { field: "y" } } };
}

function curve(): Specification {
  const data = [{ x: -1, density: 0, rows: [5, 6, 7], xs: [0.1, 0.9, 0.5] }, { x: 1, density: 0 }];
  return { data: { values: data }, mark: "line", encoding: { x: { field: "x" }, y: { field: "density" } } };
}

function brush(x: [number, number], y: [number, number] | null = null, series: number | null = null): Brush {
  return { figure: "f", x, y, series };
}

describe("rowsIn", () => {
  it("has the texts of every bin that the brush overlaps, and of none that it only touches", () => {
    const marks = marksOf(histogram());
    expect([...rowsIn(marks, brush([0.5, 1]))]).toEqual([0, 1, 7, 2]);
    expect([...rowsIn(marks, brush([0.4, 0.5]))]).toEqual([4]);
    expect([...rowsIn(marks, brush([0.49, 0.51]))].sort()).toEqual([0, 1, 2, 4, 7]);
    expect([...rowsIn(marks, brush([2, 3]))]).toEqual([]);
  });
  it("has the points inside, ends included", () => {
    const marks = marksOf(scatter());
    expect([...rowsIn(marks, brush([1, 2], [5, 10]))]).toEqual([0, 3]);
    expect([...rowsIn(marks, brush([2, 2], [-2, 0]))]).toEqual([1, 2]);
    expect([...rowsIn(marks, brush([0, 9]))]).toEqual([0, 1, 2, 3]);
  });
  it("has those texts of a curve whose own values are inside", () => {
    const marks = marksOf(curve());
    expect([...rowsIn(marks, brush([0.4, 0.9]))]).toEqual([6, 7]);
    expect([...rowsIn(marks, brush([-1, 0]))]).toEqual([]);
  });
  it("agrees with asking every text alone", () => {
    const values = Array.from({ length: 60 }, (_, i) => Math.sin(i * 37));
    const data = values.map((x, row) => ({ x, y: Math.cos(row), rows: [row] }));
    const marks = marksOf({ data: { values: data }, mark: "point", encoding: { x: { field: "x" }, y: { field: "y" } } });
    const inside = data.filter(({ x, y }) => x >= -0.3 && x <= 0.6 && y >= 0 && y <= 0.8).flatMap(({ rows }) => rows);
    expect([...rowsIn(marks, brush([-0.3, 0.6], [0, 0.8]))]).toEqual(inside);
  });
});

describe("around", () => {
  it("selects one bar of one series, and nothing beside it", () => {
    const marks = marksOf(histogram());
    for (const mark of marks) expect([...rowsIn(marks, around("f", mark, marks))]).toEqual([...mark.rows]);
  });
  it("selects a whole curve", () => {
    const marks = marksOf(curve());
    for (const mark of marks) expect([...rowsIn(marks, around("f", mark, marks))]).toEqual([...mark.rows]);
  });
});

describe("marksOf", () => {
  it("finds what draws texts, once per point of data, and numbers it", () => {
    const spec = histogram();
    spec.layer?.push({ ...spec.layer[1] });
    const marks = marksOf(spec);
    expect(marks.map((mark) => mark.rows)).toEqual([[4], [0, 1, 7], [2]]);
    expect(spec.datasets?.bars?.map((datum) => datum.link)).toEqual([0, 1, 2]);
    expect(marksOf({ layer: [] })).toEqual([]);
  });
  it("knows where height is a place", () => {
    expect(isFlat(marksOf(histogram()))).toBe(true);
    expect(isFlat(marksOf(curve()))).toBe(true);
    expect(isFlat(marksOf(scatter()))).toBe(false);
    const violin = { x: 0, low: 1, high: 1, rows: [1], xs: [0.5], ys: [0.6, 1.4] as [number, number] };
    const area = { mark: "area", encoding: { x: { field: "x" }, y: { field: "low" }, y2: { field: "high" } } };
    const marks = marksOf({ ...area, data: { values: [violin] } });
    expect(marks[0]?.y).toEqual([0.6, 1.4]);
  });
});

describe("a brush in the address", () => {
  it("is read as it was written", () => {
    for (const one of [brush([-0.5, 1]), brush([0, 1], [2, 3]), brush([0, 1], null, 2), brush([1e-7, 1e9], [-1, 0])]) {
      expect(read(written(one))).toEqual(one);
    }
    expect(written(brush([0, 0.123456789]))).toBe("f:0,0.123457");
    expect(written(brush([0, 1], null, 2))).toBe("f:0,1,,,2");
  });
  it("is none if it is anything else", () => {
    for (const text of ["", "f", "f:", ":0,1", "f:x,y", "f:0,1,2,3,4,5", '"><script>']) expect(read(text)).toBeNull();
  });
});
