"""No number of Lu et al. is printed beside ours: neither their BLEU nor their data sets could be read.

The settings of the released code's example are the defaults of `LuSettings`.
"""

from heedmap.papers.kit.sources import Source

SOURCES: dict[str, Source] = {}
