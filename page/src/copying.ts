// The buttons that copy the bottom line: as text, Markdown or LaTeX.

/** Make the buttons work, and show them: without this script they do nothing. */
export function offerCopies(): void {
  const source = document.getElementById("citations");
  const place = document.querySelector<HTMLElement>(".copies");
  if (source === null || place === null) return;
  const forms = JSON.parse(source.textContent) as Record<string, string>;
  const status = place.querySelector("[role=status]");
  place.hidden = false;
  place.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-copy]") : null;
    const form = button?.dataset.copy;
    if (form === undefined) return;
    void copy(forms[form] ?? "").then((done) => {
      if (status !== null) status.textContent = done ? `Copied as ${form}.` : "The browser did not allow it.";
    });
  });
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text); // of a page that a browser does not trust with the clipboard
  }
}

function copySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
