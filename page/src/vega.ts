// The part of Vega-Embed that the page uses. The Python package vl-convert brings it, bundled with Vega.
import type { Datum } from "./specification.ts";

export interface EmbedOptions {
  ast: boolean;
  actions: boolean;
  renderer: "svg";
  defaultStyle: boolean;
  config: object;
  tooltip: object | boolean;
}

/** A scale of an axis; `invert` is there where the axis is continuous. */
export interface Scale {
  (value: number): number;
  invert?: (pixel: number) => number;
}

/** A drawn mark, as events of a view have it. */
export interface Item {
  datum?: Datum;
}

export interface View {
  width: () => number;
  height: () => number;
  origin: () => [x: number, y: number];
  padding: () => { left: number; top: number };
  scale: (name: string) => Scale;
  toSVG: () => Promise<string>;
  runAfter: (act: () => void) => View;
  addSignalListener: (name: string, act: () => void) => View;
  addEventListener: (type: string, act: (event: MouseEvent, item: Item | null | undefined) => void) => View;
}

export interface Embedded {
  view: View;
  finalize: () => void;
}

declare global {
  interface Window {
    vegaEmbed: (place: HTMLElement, spec: object, options: EmbedOptions) => Promise<Embedded>;
  }
}
