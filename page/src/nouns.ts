// What a run's instances and their items are called, as heedmap/nouns.py: sentences are written about texts of words.

export interface Nouns {
  instance: string;
  instances: string;
  item: string;
  items: string;
}

// Quoted names stay.
const NOUN = /“[^”]*”|(?:\b([Aa]n?) )?\b([Tt]exts?|[Ww]ords?|[Tt]okens?)\b/g;

/** A sentence of the page's own, with these nouns in place of text and word; without nouns as it is. */
export function reworded(sentence: string, nouns: Nouns | null): string {
  if (nouns === null) return sentence;
  return sentence.replace(NOUN, (whole: string, article?: string, noun?: string) => {
    if (noun === undefined || (/^token/i.test(noun) && nouns.item === "word")) return whole;
    const [one, several] = /^text/i.test(noun) ? [nouns.instance, nouns.instances] : [nouns.item, nouns.items];
    const plain = noun.endsWith("s") ? several : one;
    const said = /^[A-Z]/.test(noun) ? plain.charAt(0).toUpperCase() + plain.slice(1) : plain;
    if (article === undefined) return said;
    return `${article.charAt(0)}${/^[aeiou]/i.test(said) ? "n" : ""} ${said}`;
  });
}

/** The nouns of this page; null where it is about texts of words, and outside a page. */
function ofPage(): Nouns | null {
  if (typeof document === "undefined") return null;
  const content = document.querySelector<HTMLMetaElement>('meta[name="nouns"]')?.content;
  return content === undefined ? null : (JSON.parse(content) as Nouns);
}

const NOUNS = ofPage();

/** A sentence of the page's own, in the words of this page. */
export function reword(sentence: string): string {
  return reworded(sentence, NOUNS);
}
