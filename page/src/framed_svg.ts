// A chart as an SVG file of its own, with title, number of texts and legend, which the page has as HTML around it.
import { LIGHT } from "./colours.ts";
import { visible } from "./elements.ts";

/** An entry of a legend; `line` is solid, dashed, dotted, hollow or fill. */
export interface Entry {
  label: string;
  colour: string;
  line: string;
}

const SVG = "http://www.w3.org/2000/svg";
const FONT = "system-ui, sans-serif";
const MARGIN = 12;
const SWATCH = 26; // pixels of the sign before a label
const LINE = 18;

/** Put title, lines below it and legend above a chart that Vega has drawn. */
export function framed(drawn: string, titles: readonly string[], below: readonly string[], legend: readonly Entry[]): string {
  const chart = new DOMParser().parseFromString(allowed(drawn), "image/svg+xml").documentElement;
  const inner = [chart.getAttribute("width"), chart.getAttribute("height")].map(Number);
  const width = (inner[0] ?? 0) + 2 * MARGIN;
  const root = made("svg", { xmlns: SVG, width: String(width), "font-family": FONT });
  const paper = made("rect", { width: "100%", height: "100%", fill: LIGHT.page });
  root.append(paper);
  let y = MARGIN;
  const write = (text: string, size: number, weight: string, colour: string): void => {
    for (const line of wrapped(text, width - 2 * MARGIN, `${weight} ${size}px ${FONT}`)) {
      y += LINE;
      root.append(label(line, MARGIN, y, { "font-size": String(size), "font-weight": weight, fill: colour }));
    }
  };
  for (const text of titles) write(text, 15, "600", LIGHT.text);
  for (const text of below) write(text, 12, "400", LIGHT.soft);
  for (const entry of legend) {
    const lines = wrapped(entry.label, width - 2 * MARGIN - SWATCH, `400 12px ${FONT}`);
    root.append(sign(entry, y + LINE - 4));
    for (const line of lines) {
      y += LINE;
      root.append(label(line, MARGIN + SWATCH, y, { "font-size": "12", fill: LIGHT.text }));
    }
  }
  y += MARGIN;
  chart.setAttribute("x", String(MARGIN));
  chart.setAttribute("y", String(y));
  root.append(document.importNode(chart, true));
  root.setAttribute("height", String(y + (inner[1] ?? 0) + MARGIN));
  return new XMLSerializer().serializeToString(root);
}

/** A text without what XML forbids. */
function allowed(text: string): string {
  return visible(text).replace(/[\ufffe\uffff]/g, "\ufffd");
}

function made(name: string, attributes: Record<string, string>): SVGElement {
  const node = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute !== "xmlns") node.setAttribute(attribute, value);
  }
  return node;
}

function label(text: string, x: number, y: number, attributes: Record<string, string>): SVGElement {
  const node = made("text", { x: String(x), y: String(y), ...attributes });
  node.textContent = allowed(text);
  return node;
}

function sign({ colour, line }: Entry, y: number): SVGElement {
  if (line === "fill") {
    return made("rect", { x: String(MARGIN), y: String(y - 6), width: "18", height: "11", rx: "2", fill: colour });
  }
  const [x, middle] = [MARGIN + 9, y - 1];
  if (line === "hollow") {
    const points = [`${x},${middle - 6}`, `${x + 6},${middle}`, `${x},${middle + 6}`, `${x - 6},${middle}`];
    return made("polygon", { points: points.join(" "), fill: "none", stroke: colour, "stroke-width": "2" });
  }
  const dash = { dashed: "5 3", dotted: "2 2" }[line] ?? "none";
  const ends = { x1: String(MARGIN), x2: String(MARGIN + 18), y1: String(middle), y2: String(middle) };
  return made("line", { ...ends, stroke: colour, "stroke-width": "3", "stroke-dasharray": dash });
}

/** Break a text into lines between words; a word that is wider than a line stays whole. */
function wrapped(text: string, width: number, font: string): string[] {
  const context = document.createElement("canvas").getContext("2d");
  if (context !== null) context.font = font;
  const isWide = (line: string): boolean => (context?.measureText(line).width ?? 0) > width;
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || isWide(`${last} ${word}`)) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
