"""docs/card.svg, the head of the card for the README: python scripts/card_picture.py RUN"""

import io
import sys
from pathlib import Path

from rich.console import Console

from heedmap import open_audit
from heedmap.report.card import card_head

console = Console(record=True, width=96, file=io.StringIO(), force_terminal=True)
console.print(card_head(open_audit(sys.argv[1])))
picture = console.export_svg(title="heedmap audit --data reviews")
# A picture that asks the network for nothing: the reader's own monospace font serves.
head, _, rest = picture.partition("@font-face")
while rest:
    rest = rest.partition("}")[2]
    before, _, rest = rest.partition("@font-face")
    head += before
Path("docs/card.svg").write_text(head, encoding="utf-8")
