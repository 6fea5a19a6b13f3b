// Draw the figures with Vega: in the page's colours, and again when the system switches to dark or light.
import { embedOptions, pageColours } from "./colours.ts";
import { offerDownloads } from "./downloads.ts";
import type { Specification } from "./specification.ts";
import type { Embedded, View } from "./vega.ts";

const scheme = matchMedia("(prefers-color-scheme: dark)");

/** What the page does with its figures, if they draw texts of a table. */
export interface Links {
  /** The names of the texts, by their rows. */
  names: readonly string[];
  /** See a specification before it is drawn, and name its texts. */
  prepare: (key: string, spec: Specification) => void;
  /** See a figure whenever it has been drawn. */
  drawn: (key: string, place: HTMLElement, view: View) => void;
}

class Chart {
  readonly #place: HTMLElement;
  readonly #key: string;
  readonly #spec: Specification;
  readonly #links: Links | null;
  #embedded: Embedded | null = null;

  constructor(place: HTMLElement, source: string, links: Links | null) {
    this.#place = place;
    this.#key = (place.dataset.chart ?? "").replace(/^spec-/, "");
    this.#spec = JSON.parse(source) as Specification;
    this.#links = links;
    const description = place.dataset.alternative;
    if (description !== undefined) this.#spec.description = description; // Vega gives it to screen readers
    links?.prepare(this.#key, this.#spec);
    offerDownloads(this.#key, place, this.#spec, links?.names ?? null);
  }

  async draw(): Promise<void> {
    const options = embedOptions(pageColours(), "transparent", { disableDefaultStyle: true });
    this.#embedded?.finalize();
    try {
      this.#embedded = await window.vegaEmbed(this.#place, this.#spec, options);
      this.#links?.drawn(this.#key, this.#place, this.#embedded.view);
    } catch (error: unknown) {
      this.#place.textContent = `This figure could not be drawn: ${String(error)}`;
    }
  }
}

/** Draw all figures, now and whenever the colours change; `links` join them with the texts of the page. */
export function drawCharts(links: Links | null = null): void {
  const charts = [...document.querySelectorAll<HTMLElement>("[data-chart]")].flatMap((place) => {
    const source = document.getElementById(place.dataset.chart ?? "");
    return source === null ? [] : [new Chart(place, source.textContent, links)];
  });
  const draw = (): void => {
    for (const chart of charts) void chart.draw();
  };
  scheme.addEventListener("change", draw);
  draw();
}
