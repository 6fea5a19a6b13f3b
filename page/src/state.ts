// What a reader has chosen, and the address that restores it: `#text=7&sort=-confidence`.

export interface State {
  /** Anchors of the open text, and of the one pinned beside it. */
  text: string;
  pin: string;
  /** A column, with "-" before it if the largest is first; empty for the order of the data. */
  sort: string;
  search: string;
  predicted: string;
  label: string;
  right: string;
  level: string;
  /** Bounds as they are typed; empty for none. */
  shortest: string;
  longest: string;
  least: string;
  most: string;
  /** A part of a figure, `FIGURE:x0,x1,y0,y1`, whose texts alone are shown. */
  brush: string;
  /** The number that has a column of its own. */
  show: string;
}

export const DEFAULT: Readonly<State> = {
  text: "",
  pin: "",
  sort: "",
  search: "",
  predicted: "",
  label: "",
  right: "",
  level: "",
  shortest: "",
  longest: "",
  least: "",
  most: "",
  brush: "",
  show: "",
};

const NAMES = Object.keys(DEFAULT) as (keyof State)[];
export const PLACE = "#texts";

/** The address of a state. */
export function toHash(state: Readonly<State>): string {
  const chosen = new URLSearchParams();
  for (const name of NAMES) if (state[name] !== "") chosen.set(name, state[name]);
  const text = chosen.toString();
  return text === "" ? PLACE : `#${text}`;
}

/** The state of an address; null if it is the anchor of something else, which changes no choice. */
export function fromHash(hash: string): State | null {
  if (hash === "" || hash === "#" || hash === PLACE) return { ...DEFAULT };
  if (!hash.includes("=")) return null;
  const chosen = new URLSearchParams(hash.slice(1));
  const state = { ...DEFAULT };
  for (const name of NAMES) state[name] = chosen.get(name) ?? "";
  return state;
}

/** The same choices without any filter: the order, the columns and the open texts stay. */
export function unfiltered(state: Readonly<State>): State {
  const { text, pin, sort, show } = state;
  return { ...DEFAULT, text, pin, sort, show };
}
