// Links of the bottom line to some of the texts: the address filters the table, which comes into sight.

export function followEvidence(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>('.bottom-line a[href*="="]')) {
    link.addEventListener("click", () => {
      document.querySelector("#explorer .table")?.scrollIntoView({ block: "center" });
    });
  }
}
