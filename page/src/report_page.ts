// The script of the report: its texts, its questions, and its figures.
import { drawCharts } from "./charts.ts";
import { offerCopies } from "./copying.ts";
import { openByAddress } from "./disclosure.ts";
import { followEvidence } from "./evidence.ts";
import { Explorer } from "./explorer.ts";
import { LinkedFigures } from "./linked_figures.ts";
import { reword } from "./nouns.ts";
import { readIndex } from "./payload.ts";
import { openForPrint } from "./printing.ts";

/** Show the texts, then the figures: with links between them, if the texts can be read. */
async function explore(): Promise<void> {
  const root = document.getElementById("explorer");
  const source = document.getElementById("texts-index");
  const fallback = document.getElementById("instances");
  if (root === null || source === null || fallback === null) {
    drawCharts();
    return;
  }
  root.hidden = false;
  fallback.hidden = true;
  let figures: LinkedFigures | null = null;
  try {
    const index = await readIndex(JSON.parse(source.textContent) as string);
    figures = new LinkedFigures(index);
    const explorer = new Explorer(root, index, packed(".texts-block"), packed(".read-outs-block"), figures);
    drawCharts(figures); // first: a brush in the address is one of their marks
    for (const hint of document.querySelectorAll<HTMLElement>(".needs-script")) hint.hidden = false;
    explorer.start();
  } catch (error) {
    // An old browser cannot decompress: the texts that are in the page as HTML are shown instead.
    root.textContent = `${reword("The table of all texts could not be shown")}: ${String(error)}`;
    fallback.hidden = false;
    if (figures === null) drawCharts();
  }
}

function packed(selector: string): string[] {
  return [...document.querySelectorAll(selector)].map((block) => JSON.parse(block.textContent) as string);
}

offerCopies();
openByAddress();
followEvidence();
openForPrint();
void explore();
