// The colours of the figures, the page's own or the light ones of a file, and how Vega draws in them.
import type { EmbedOptions } from "./vega.ts";

export interface Colours {
  page: string;
  text: string;
  soft: string;
  line: string;
  quiet: string;
}

/** Those of style.css in the light, for files. */
export const LIGHT: Readonly<Colours> = {
  page: "#ffffff",
  text: "#1c1d20",
  soft: "#5c6068",
  line: "#e2e2de",
  quiet: "#8a8f98",
};

/** Those that the page has now. */
export function pageColours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const named = Object.keys(LIGHT).map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
  return { ...LIGHT, ...(Object.fromEntries(named) as Partial<Colours>) };
}

/** How Vega draws a figure in these colours. */
export function embedOptions(
  colours: Readonly<Colours>,
  background: string,
  tooltip: EmbedOptions["tooltip"],
): EmbedOptions {
  return {
    ast: true, // without eval, which the page's policy forbids
    actions: false,
    renderer: "svg",
    defaultStyle: false, // the page's own styles have what Vega would insert, which the policy forbids too
    config: chartConfig(colours, background),
    tooltip,
  };
}

function chartConfig(colours: Readonly<Colours>, background: string): object {
  return {
    background,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: colours.text,
      titleColor: colours.text,
      titleFontWeight: "normal",
      gridColor: colours.line,
      domainColor: colours.quiet,
      tickColor: colours.quiet,
      labelFontSize: 11,
      titleFontSize: 12,
      tickCount: 5,
    },
    text: { color: colours.text },
    rule: { color: colours.text, aria: false }, // lines between marks, which have no names
    point: { color: colours.text },
    aria: true,
  };
}
