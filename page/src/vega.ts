// The part of Vega-Embed that the page uses. The Python package vl-convert brings it, bundled with Vega.
export interface EmbedOptions {
  ast: boolean;
  actions: boolean;
  renderer: "svg";
  defaultStyle: boolean;
  config: object;
  tooltip: object;
}

declare global {
  interface Window {
    vegaEmbed: (place: HTMLElement, spec: object, options: EmbedOptions) => Promise<unknown>;
  }
}
