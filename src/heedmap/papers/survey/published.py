"""No number is printed beside the survey's: it asks these questions and answers none of them."""

from heedmap.papers.kit.sources import Source

SOURCES: dict[str, Source] = {}
