// The buttons under a figure: what is drawn as SVG, in the light colours, and as CSV.
import { embedOptions, LIGHT } from "./colours.ts";
import { drawnTable, toCsv } from "./csv.ts";
import { element } from "./elements.ts";
import { framed, type Entry } from "./framed_svg.ts";
import type { Specification } from "./specification.ts";

/** Add the buttons to the figure of a chart. */
export function offerDownloads(
  key: string,
  place: HTMLElement,
  spec: Specification,
  names: readonly string[] | null,
): void {
  const figure = place.closest("figure");
  if (figure === null) return;
  const title = textOf(figure, "h3");
  const button = (kind: string, make: () => Promise<void>): HTMLElement => {
    const made = element("button", { type: "button", "aria-label": `Download ${kind}: ${title}` }, kind);
    made.addEventListener("click", () => {
      void make();
    });
    return made;
  };
  const svg = button("SVG", async () => {
    save(`${key}.svg`, "image/svg+xml", await drawnSvg(figure, place, spec));
  });
  const csv = button("CSV", () => {
    save(`${key}.csv`, "text/csv", toCsv(drawnTable(spec, names)));
    return Promise.resolve();
  });
  figure.append(element("p", { class: "small downloads" }, "Download ", svg, " ", csv));
}

async function drawnSvg(figure: HTMLElement, place: HTMLElement, spec: Specification): Promise<string> {
  const options = embedOptions(LIGHT, LIGHT.page, false);
  const width = Math.max(200, place.clientWidth - 60); // Vega adds the axis, which the container's width contains
  const { view, finalize } = await window.vegaEmbed(element("div"), { ...spec, width }, options);
  const drawn = await view.toSVG();
  finalize();
  const entries = [...figure.querySelectorAll<HTMLElement>(".keys .key")].map((key): Entry => {
    const swatch = key.querySelector<HTMLElement>("i");
    const colour = swatch === null ? "" : getComputedStyle(swatch).getPropertyValue("--key").trim();
    return {
      label: key.textContent.trim(),
      colour: colour === "" || colour === "currentColor" ? LIGHT.text : colour,
      line: swatch?.className ?? "fill",
    };
  });
  return framed(drawn, [textOf(figure, "h3")], [textOf(figure, ".n")], entries);
}

function textOf(figure: HTMLElement, selector: string): string {
  return figure.querySelector(selector)?.textContent.trim() ?? "";
}

function save(name: string, type: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type: `${type};charset=utf-8` }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => {
    URL.revokeObjectURL(address);
  }, 10_000);
}
