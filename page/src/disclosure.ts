// Questions are closed lines; the address of one, or of anything inside it, opens it.

/** Open what the address names, now and whenever it changes. */
export function openByAddress(): void {
  addEventListener("hashchange", open);
  open();
}

function open(): void {
  let place: Element | null = document.getElementById(decoded(location.hash.slice(1)));
  if (place === null) return;
  const target = place;
  for (; place !== null; place = place.parentElement) {
    if (place instanceof HTMLDetailsElement) place.open = true;
  }
  target.scrollIntoView({ block: "start" });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not an address of ours
  }
}
