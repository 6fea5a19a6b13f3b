// Draw the figures with Vega: in the page's colours, and again when the system switches to dark or light.
import type {} from "./vega.ts";

const scheme = matchMedia("(prefers-color-scheme: dark)");

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function config(): object {
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: colour("--text"),
      titleColor: colour("--text"),
      titleFontWeight: "normal",
      gridColor: colour("--line"),
      domainColor: colour("--quiet"),
      tickColor: colour("--quiet"),
      labelFontSize: 11,
      titleFontSize: 12,
      tickCount: 5,
    },
    text: { color: colour("--text") },
    rule: { color: colour("--text"), aria: false }, // lines between marks, which have no names
    point: { color: colour("--text") },
    aria: true,
  };
}

function draw(): void {
  for (const place of document.querySelectorAll<HTMLElement>("[data-chart]")) {
    const source = document.getElementById(place.dataset.chart ?? "");
    if (source === null) continue;
    const options = {
      ast: true, // without eval, which the page's policy forbids
      actions: false,
      renderer: "svg" as const,
      defaultStyle: false, // the page's own styles have what Vega would insert, which the policy forbids too
      config: config(),
      tooltip: { disableDefaultStyle: true },
    };
    window.vegaEmbed(place, JSON.parse(source.textContent) as object, options).catch((error: unknown) => {
      place.textContent = `This figure could not be drawn: ${String(error)}`;
    });
  }
}

/** Draw all figures, now and whenever the colours change. */
export function drawCharts(): void {
  scheme.addEventListener("change", draw);
  draw();
}
