"""No number of Vashishth et al. is printed beside ours: their tables could not be read.

What the claims say is in their abstract.
"""

from heedmap.papers.kit.sources import Source

SOURCES: dict[str, Source] = {}
