// The script of a page of runs side by side: both maps of any text, and the picture.
import { drawCharts } from "./charts.ts";
import { MapChooser } from "./map_chooser.ts";
import type { Comparison } from "./two_maps.ts";

const source = document.getElementById("maps-data");
if (source !== null) {
  new MapChooser(JSON.parse(source.textContent) as Comparison).restore();
  for (const part of document.querySelectorAll<HTMLElement>(".needs-script")) part.hidden = false;
}
drawCharts();
