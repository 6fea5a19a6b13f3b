// One figure whose marks are texts: pointing at a mark or tapping it names it, a click opens it, a drag brushes.
import { element, visible } from "./elements.ts";
import { around, isFlat, type Brush, type Mark } from "./marks.ts";
import { reword } from "./nouns.ts";
import type { Datum } from "./specification.ts";
import type { View } from "./vega.ts";

export interface FigureActions {
  open: (row: number) => void;
  /** Null clears it; `moving` while the reader still drags. */
  brush: (brush: Brush | null, moving: boolean) => void;
  /** What a mark draws, in words. */
  name: (mark: Mark) => string;
}

const DRAG = 4; // pixels that make a click a drag
const FAINTEST = 0.15; // opacity of a mark without any chosen text

export class LinkedFigure {
  readonly key: string;
  readonly marks: readonly Mark[];
  readonly #actions: FigureActions;
  readonly #rectangle = element("div", { class: "brush", hidden: "" });
  readonly #ring = element("div", { class: "ring", hidden: "" });
  readonly #status = element("p", { class: "small pointed", role: "status" });
  readonly #clear = element("button", { type: "button", hidden: "" }, "Clear the selection");
  readonly #order: readonly number[];
  #place: HTMLElement | null = null;
  #view: View | null = null;
  #elements: { node: SVGElement; link: number }[] = [];
  #chosen: ReadonlySet<number> | null = null;
  #brush: Brush | null = null;
  #active = -1;
  #anchor = -1;
  #frame = 0;
  #isDragged = false;
  #isTouched = false;

  constructor(key: string, marks: readonly Mark[], actions: FigureActions) {
    this.key = key;
    this.marks = marks;
    this.#actions = actions;
    const middle = ({ x }: Mark): number => x[0] + x[1];
    this.#order = marks.map((_, i) => i).sort((a, b) => this.#compare(a, b, middle));
    this.#clear.addEventListener("click", () => {
      actions.brush(null, false);
    });
  }

  /** Take over a figure that Vega has drawn, also when it is drawn again. */
  attach(place: HTMLElement, view: View): void {
    this.#view = view;
    if (this.#place === null) {
      this.#place = place;
      this.#listen(place);
    }
    place.append(this.#rectangle, this.#ring);
    view.addEventListener("click", (_, item) => {
      const link = item?.datum?.link;
      if (typeof link !== "number" || this.#isDragged) return;
      // A finger does not hover: the tap that opens a text names it as well.
      if (this.#isTouched) this.#name(link);
      this.#act(link);
    });
    const again = (): void => {
      view.runAfter(() => {
        this.#collect();
      });
    };
    view.addSignalListener("width", again);
    this.#collect();
  }

  /** Show which texts are chosen (null: all), and the brush, if it is of this figure. */
  show(chosen: ReadonlySet<number> | null, brush: Brush | null): void {
    this.#chosen = chosen;
    this.#brush = brush?.figure === this.key ? brush : null;
    this.#clear.hidden = this.#brush === null;
    this.#paint();
  }

  #compare(a: number, b: number, middle: (mark: Mark) => number): number {
    const [first, second] = [this.marks[a], this.marks[b]];
    return first === undefined || second === undefined ? 0 : middle(first) - middle(second) || a - b;
  }

  /** Find the elements that Vega has made of the marks. */
  #collect(): void {
    this.#elements = [];
    for (const node of this.#place?.querySelectorAll<SVGElement>("svg *") ?? []) {
      const link = (node as SVGElement & { __data__?: { datum?: Datum } }).__data__?.datum?.link;
      if (typeof link !== "number") continue;
      node.classList.add("of-texts");
      this.#elements.push({ node, link });
    }
    this.#paint();
  }

  #paint(): void {
    for (const { node, link } of this.#elements) {
      const opacity = String(this.#share(link));
      if (node.style.opacity !== opacity) node.style.opacity = opacity;
    }
    const box = this.#brush === null ? null : this.#pixels(this.#brush);
    this.#rectangle.hidden = box === null;
    if (box === null) return;
    const names = ["left", "top", "width", "height"];
    for (const [i, name] of names.entries()) this.#rectangle.style.setProperty(name, `${box[i] ?? 0}px`);
  }

  /** The opacity of a mark: the more of its texts are chosen, the stronger. */
  #share(link: number): number {
    const rows = this.marks[link]?.rows ?? [];
    if (this.#chosen === null || rows.length === 0) return 1;
    let count = 0;
    for (const row of rows) if (this.#chosen.has(row)) count += 1;
    return FAINTEST + ((1 - FAINTEST) * count) / rows.length;
  }

  /** The box of a brush in pixels of the place: left, top, width, height. */
  #pixels(brush: Brush): number[] | null {
    const view = this.#view;
    if (view === null) return null;
    const [left, top] = this.#origin(view);
    const ends = (name: string, span: readonly [number, number] | null, size: number): [number, number] => {
      if (span === null) return [0, size];
      const scale = view.scale(name);
      const pixels = span.map((end) => Math.max(0, Math.min(size, scale(end)))).sort((a, b) => a - b);
      return [pixels[0] ?? 0, pixels[1] ?? 0];
    };
    const [x0, x1] = ends("x", brush.x, view.width());
    const [y0, y1] = ends("y", brush.y, view.height());
    return [left + x0, top + y0, x1 - x0, y1 - y0];
  }

  /** Where the axes begin, in pixels of the place. */
  #origin(view: View): [number, number] {
    const svg = this.#place?.querySelector("svg")?.getBoundingClientRect();
    const place = this.#place?.getBoundingClientRect();
    const [x, y] = view.origin(); // without the padding around the figure
    const { left, top } = view.padding();
    return [x + left + (svg?.left ?? 0) - (place?.left ?? 0), y + top + (svg?.top ?? 0) - (place?.top ?? 0)];
  }

  /** The part of the figure between two points of the screen. */
  #between(from: PointerEvent, to: PointerEvent): Brush | null {
    const view = this.#view;
    const place = this.#place?.getBoundingClientRect();
    if (view === null || place === undefined) return null;
    const [left, top] = this.#origin(view);
    const span = (name: string, a: number, b: number, size: number): [number, number] | null => {
      const { invert } = view.scale(name);
      if (invert === undefined) return null;
      const ends = [a, b].map((pixel) => invert(Math.max(0, Math.min(size, pixel))));
      ends.sort((first, second) => first - second);
      return [ends[0] ?? 0, ends[1] ?? 0];
    };
    const x = span("x", from.clientX - place.left - left, to.clientX - place.left - left, view.width());
    if (x === null) return null;
    const y = isFlat(this.marks)
      ? null
      : span("y", from.clientY - place.top - top, to.clientY - place.top - top, view.height());
    return { figure: this.key, x, y, series: null };
  }

  #listen(place: HTMLElement): void {
    const figure = place.closest("figure");
    place.classList.add("linked");
    place.setAttribute("tabindex", "0");
    place.setAttribute(
      "aria-description",
      reword("Arrow keys go through the marks, with Shift they select, Enter opens a text or selects several, Escape clears."),
    );
    place.after(this.#status);
    figure?.querySelector(".downloads")?.prepend(this.#clear, " ");
    place.addEventListener("keydown", (event) => {
      this.#onKey(event);
    });
    place.addEventListener("blur", () => {
      this.#ring.hidden = true; // the name stays: buttons must not move under a click
    });
    place.addEventListener("pointerdown", (down) => {
      this.#isTouched = down.pointerType !== "mouse";
      if (down.button !== 0 || !down.isPrimary) return;
      this.#onDrag(place, down);
    });
  }

  #onDrag(place: HTMLElement, down: PointerEvent): void {
    this.#isDragged = false;
    const move = (event: PointerEvent): void => {
      if (event.pointerId !== down.pointerId) return;
      if (!this.#isDragged && Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) < DRAG) return;
      const isFirst = !this.#isDragged;
      if (isFirst) place.setPointerCapture(down.pointerId);
      this.#isDragged = true;
      cancelAnimationFrame(this.#frame);
      // The first step is one of the history; the others replace it.
      if (isFirst) this.#send(down, event, false);
      else this.#frame = requestAnimationFrame(() => { this.#send(down, event, true); });
    };
    const stop = (event: PointerEvent): void => {
      if (event.pointerId !== down.pointerId) return;
      place.removeEventListener("pointermove", move);
      place.removeEventListener("pointerup", stop);
      place.removeEventListener("pointercancel", stop);
      cancelAnimationFrame(this.#frame);
      if (this.#isDragged && event.type === "pointerup") this.#send(down, event, true);
    };
    place.addEventListener("pointermove", move);
    place.addEventListener("pointerup", stop);
    place.addEventListener("pointercancel", stop);
  }

  #send(from: PointerEvent, to: PointerEvent, moving: boolean): void {
    const brush = this.#between(from, to);
    if (brush !== null) this.#actions.brush(brush, moving);
  }

  /** Open the text of a mark, or select the texts of one that has several. */
  #act(link: number): void {
    const mark = this.marks[link];
    const [row] = mark?.rows ?? [];
    if (mark === undefined || row === undefined) return;
    if (mark.rows.length === 1) this.#actions.open(row);
    else this.#actions.brush(around(this.key, mark, this.marks), false);
  }

  #onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.#order.length - 1;
    const next = this.#beside(1, event.shiftKey);
    const previous = this.#beside(-1, event.shiftKey);
    const moves: Record<string, number> = {
      ArrowRight: next,
      ArrowDown: next,
      ArrowLeft: previous,
      ArrowUp: previous,
      Home: 0,
      End: last,
    };
    const place = moves[event.key];
    const link = this.#order[this.#active];
    if (place !== undefined) {
      if (!event.shiftKey || this.#anchor < 0) this.#anchor = place;
      this.#active = place;
      this.#point();
      if (event.shiftKey) this.#extend();
    } else if (event.key === "Enter" && link !== undefined) {
      this.#act(link);
    } else if (event.key === "Escape" && this.#brush !== null) {
      this.#actions.brush(null, false);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The next mark in a direction; `elsewhere`: the next that stands at another place, so that a selection grows. */
  #beside(step: number, elsewhere: boolean): number {
    const last = this.#order.length - 1;
    const placeOf = (i: number): string => String(this.marks[this.#order[i] ?? -1]?.x);
    let place = this.#active + step;
    while (elsewhere && place > 0 && place < last && placeOf(place) === placeOf(this.#active)) place += step;
    return Math.max(0, Math.min(place, last));
  }

  /** Make a mark the active one, from which the arrow keys go on, and name it. */
  #name(link: number): void {
    this.#active = this.#anchor = this.#order.indexOf(link);
    this.#point();
  }

  /** Name the active mark, and show where it is. */
  #point(): void {
    const link = this.#order[this.#active];
    const mark = link === undefined ? undefined : this.marks[link];
    if (mark === undefined) return;
    this.#status.textContent = visible(this.#actions.name(mark));
    const node = this.#elements.find((candidate) => candidate.link === link)?.node.getBoundingClientRect();
    const around = this.#place?.getBoundingClientRect();
    this.#ring.hidden = node === undefined || around === undefined;
    if (node === undefined || around === undefined) return;
    const box = { left: node.left - around.left, top: node.top - around.top, width: node.width, height: node.height };
    for (const [name, size] of Object.entries(box)) this.#ring.style.setProperty(name, `${size}px`);
  }

  /** Select from the mark where Shift was pressed to the active one. */
  #extend(): void {
    const ends = [this.#anchor, this.#active].flatMap((place) => this.marks[this.#order[place] ?? -1]?.x ?? []);
    const x: [number, number] = [Math.min(...ends), Math.max(...ends)];
    this.#actions.brush({ figure: this.key, x, y: null, series: null }, this.#brush !== null);
  }
}
