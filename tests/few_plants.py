"""Calibrations that take seconds."""

from dataclasses import replace

import pytest

from heedmap.calibration.corpora import FAMILIES as CORPUS_FAMILIES


@pytest.fixture
def two_plants(monkeypatch):
    """A grid of two families and one encoder, whose plants are quickly made."""
    few = tuple(
        replace(one, makers={"none": one.makers["none"]})
        for one in CORPUS_FAMILIES
        if one.name in ("corpus, cue attended", "corpus, random words attended")
    )
    monkeypatch.setattr("heedmap.calibration.families.MODULES", ("corpora",))
    monkeypatch.setattr("heedmap.calibration.corpora.FAMILIES", few)
