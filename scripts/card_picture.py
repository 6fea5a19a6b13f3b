"""docs/card.svg, the head of the card for the README: python scripts/card_picture.py RUN"""

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.segment import Segments

from heedmap import open_audit
from heedmap.report.card import card

MOST = 54  # lines; the picture ends with the last question that fits

console = Console(record=True, width=96, file=io.StringIO(), force_terminal=True)
lines = console.render_lines(card(open_audit(sys.argv[1])), new_lines=True)
rules = [i for i, line in enumerate(lines) if "──────" in "".join(part.text for part in line)]
end = max(i for i in rules if i < MOST)
console.print(Segments([part for line in [*lines[:end], lines[-1]] for part in line]), end="")
picture = console.export_svg(title="heedmap audit --data reviews")
# A picture that asks the network for nothing: the reader's own monospace font serves.
head, _, rest = picture.partition("@font-face")
while rest:
    rest = rest.partition("}")[2]
    before, _, rest = rest.partition("@font-face")
    head += before
picture = head
Path("docs/card.svg").write_text(picture, encoding="utf-8")
