// The script of the report: its texts, its questions, and its figures.
import { drawCharts } from "./charts.ts";
import { offerCopies } from "./copying.ts";
import { openByAddress } from "./disclosure.ts";
import { followEvidence } from "./evidence.ts";
import { Explorer } from "./explorer.ts";
import { readIndex } from "./payload.ts";
import { openForPrint } from "./printing.ts";

async function explore(): Promise<void> {
  const root = document.getElementById("explorer");
  const source = document.getElementById("texts-index");
  const fallback = document.getElementById("instances");
  if (root === null || source === null || fallback === null) return;
  root.hidden = false;
  fallback.hidden = true;
  try {
    const index = await readIndex(JSON.parse(source.textContent) as string);
    const blocks = [...document.querySelectorAll(".texts-block")];
    const explorer = new Explorer(
      root,
      index,
      blocks.map((block) => JSON.parse(block.textContent) as string),
    );
    explorer.start();
  } catch (error) {
    // An old browser cannot decompress: the texts that are in the page as HTML are shown instead.
    root.textContent = `The table of all texts could not be shown: ${String(error)}`;
    fallback.hidden = false;
  }
}

offerCopies();
openByAddress();
followEvidence();
openForPrint();
void explore();
drawCharts();
