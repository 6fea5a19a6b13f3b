// What of a reader's choice the page does not know, or no text can have: each a part of one line.
import type { Column } from "./columns.ts";
import { reword } from "./nouns.ts";
import { LEVELS, type Index } from "./payload.ts";
import type { State } from "./state.ts";

const ANSWERS = ["right", "wrong"];
const BOUNDS = ["shortest", "longest", "least", "most"] as const;

/** Name what an address asks for and this page does not have. */
export function unknown(
  state: Readonly<State>,
  index: Index,
  columns: readonly Column[],
  anchors: readonly string[],
): string[] {
  const ids = columns.map(({ id }) => id);
  const known: [keyof State, readonly string[]][] = [
    ["text", anchors],
    ["pin", anchors],
    ["sort", ids.flatMap((id) => [id, `-${id}`])],
    ["show", ids],
    ["predicted", index.classes],
    ["label", index.classes],
    ["right", ANSWERS],
    ["level", index.level === null ? [] : LEVELS],
  ];
  const strange = known.flatMap(([name, values]) =>
    state[name] === "" || values.includes(state[name]) ? [] : [`${name} “${shortened(state[name])}”`],
  );
  const noNumbers = BOUNDS.filter((name) => Number.isNaN(Number(state[name]))).map(
    (name) => `${name} “${shortened(state[name])}”`,
  );
  const all = [...strange, ...noNumbers];
  return all.length === 0 ? [] : [`This page does not know what its address names: ${all.join(", ")}`];
}

/** Say why no text can lie between bounds. */
export function impossible({ shortest, longest, least, most }: Readonly<State>): string[] {
  const reasons: string[] = [];
  if (crossed(shortest, longest)) reasons.push(reword(`No text has a length from ${shortest} to ${longest}`));
  if (crossed(least, most)) reasons.push(reword(`No text has a confidence from ${least} to ${most}`));
  else if (crossed(least, "1") || crossed("0", most)) reasons.push("A confidence lies between 0 and 1");
  return reasons;
}

function crossed(low: string, high: string): boolean {
  return low.trim() !== "" && high.trim() !== "" && Number(low) > Number(high);
}

function shortened(value: string): string {
  const letters = Array.from(value);
  return letters.length > 40 ? `${letters.slice(0, 40).join("")}…` : value;
}
