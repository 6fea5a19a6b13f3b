// On paper: what is decisive is open, and the opened texts are broken into lines of the paper's width.

const PAPER = 680; // pixels; A4 and Letter, with the margins of the style sheet, have a little more
const DECISIVE = "#measured, #run, .comparisons, .verdict:not(.compared), .verdict:not(.compared) details";

/** Open what decides while the page is printed, and close it again. */
export function openForPrint(): void {
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll<HTMLDetailsElement>(DECISIVE)].filter((details) => !details.open);
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}

/** Lay out an element for paper while the page is printed: no observer of its size is told of that. */
export function layOutForPrint(place: HTMLElement, layOut: () => void): void {
  const at = (width: string): void => {
    place.style.width = width;
    layOut();
  };
  addEventListener("beforeprint", () => {
    at(`${PAPER}px`);
  });
  addEventListener("afterprint", () => {
    at("");
  });
}
