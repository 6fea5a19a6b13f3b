"""The version, for those that `heedmap` itself imports and who therefore cannot ask it."""

__version__ = "0.1.0"
