// Elements, made with text and attributes only: no text of the data is ever read as HTML.

type Content = Node | string;

/** Make an element. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...content: Content[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...content);
  return made;
}

/** Show control characters as symbols, as heedmap/report/templates.py does. */
export function visible(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, (sign) =>
    String.fromCharCode(sign === "\x7f" ? 0x2421 : 0x2400 + sign.charCodeAt(0)),
  );
}

export const SIGNS: Record<string, string> = {
  for: "+", mixed: "~", against: "−", "cannot tell": "?", "not asked": "·",
};

/** A level, or right and wrong, as everywhere on the page: told apart without colour, too. */
export function chip(level: string, words = level): HTMLSpanElement {
  const sign = SIGNS[level];
  const made = element("span", { class: `chip ${level.replace(" ", "-")}` });
  if (sign !== undefined) made.append(element("span", { class: "sign" }, sign), " ");
  made.append(words);
  return made;
}

/** A number with so many decimals, and a true minus sign. */
export function fixed(value: number, decimals: number): string {
  return value.toFixed(decimals).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
}

/** A count with commas between thousands, as everywhere in heedmap. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
