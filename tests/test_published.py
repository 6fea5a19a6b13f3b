"""Which published numbers there are, and that each is named with where it was read."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from heedmap.papers.kit.sources import KINDS, Source

PAPERS = (
    "brunner", "clark", "drozdyuk", "jain_wallace", "lu", "pruthi", "serrano_smith", "snell",
    "survey", "vashishth", "wiegreffe_pinter",
)  # fmt: skip
SPECIFICATIONS = Path(__file__).parents[2] / "shared" / "specs"
READ_IN = {
    "clark": "lu-clark-mohankumar.md",
    "jain_wallace": "jain-wallace-wiegreffe-pinter.md",
    "lu": "lu-clark-mohankumar.md",
    "wiegreffe_pinter": "jain-wallace-wiegreffe-pinter.md",
}
NUMBER = re.compile(r"(?<![\w.])[<>]?\d*\.?\d+(?:e-?\d+)?(?![\w])")
READ = re.compile(r"CSV|\[run")
REMEMBERED = re.compile(r"\[(?:M|mem)\b[^]]*\]")


def numbers(value: object) -> Iterator[str]:
    """Yield the numbers in a value, keys left out; of texts those that are a number and nothing else."""
    if isinstance(value, str):
        if value.strip() and not re.sub(r"[-<>±.\de\s]", "", value) and re.search(r"\d", value):
            yield from NUMBER.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from numbers(item)
    elif isinstance(value, tuple | list | set):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{value:g}"


def tables(paper: str) -> dict[str, list[str]]:
    """Return the numbers of each value of a `published` module that holds any, by its name."""
    module = import_module(f"heedmap.papers.{paper}.published")
    values = {
        name: list(numbers(value)) for name, value in vars(module).items() if name[:2] != "__"
    }
    ours = {name: found for name, found in values.items() if found and name != "NONE"}
    folder = files(module.__package__)
    ours |= {one.name: ["csv"] for one in folder.iterdir() if one.name.endswith(".csv")}
    return ours


@pytest.mark.parametrize("paper", PAPERS)
def test_every_published_number_has_a_source_that_somebody_read(paper):
    sources = import_module(f"heedmap.papers.{paper}.published").SOURCES
    assert set(tables(paper)) <= set(sources)
    for source in sources.values():
        assert isinstance(source, Source)
        assert source.kind in KINDS
        assert source.place


def test_there_is_no_paper_without_a_published_module():
    folder = files("heedmap.papers")
    assert {one.name for one in folder.iterdir() if one.is_dir()} - {"kit", "__pycache__"} == set(
        PAPERS
    )


@pytest.mark.parametrize(
    ("table", "values"), [("F", (0.5, {"a": 1})), ("G", "<1e-6"), ("H", {3: 4})]
)
def test_a_table_without_a_source_is_seen(table, values, monkeypatch):
    module = import_module("heedmap.papers.serrano_smith.published")
    monkeypatch.setattr(module, table, values, raising=False)
    assert set(tables("serrano_smith")) - set(module.SOURCES) == {table}


def test_no_kind_of_source_is_somebodys_memory():
    assert not [kind for kind in KINDS if "memory" in kind or kind in ("M", "mem")]


@cache
def confirmed(page: str) -> frozenset[float]:
    """Return the numbers of a specification that do not carry the mark of memory.

    The mark may follow a number in a cell; in a line without a table, or in a heading before one, it marks all
    but the cells with a mark of their own.
    """
    kept, of_memory = [], False
    for line in (SPECIFICATIONS / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            marked = REMEMBERED.search(line) is not None
            of_memory = marked or (of_memory and not line.strip())
        kept += [
            cell
            for cell in re.split(r"\|", line)
            if (READ.search(cell) if of_memory else not REMEMBERED.search(cell))
        ]
    text = " ".join(kept).replace("⁻", "-")
    return frozenset(float(found.lstrip("<>")) for found in NUMBER.findall(text))


@pytest.mark.skipif(not SPECIFICATIONS.is_dir(), reason="the specifications are not here")
@pytest.mark.parametrize("paper", PAPERS)
def test_no_published_number_is_from_memory(paper):
    known = confirmed(READ_IN.get(paper, "serrano-snell-pruthi-drozdyuk.md"))
    scales = (1.0, 100.0)  # a share, or per cent
    unknown = {
        name: [
            number
            for number in found
            if number != "csv"
            and not any(
                abs(factor * float(number.lstrip("<>")) - value) < 1e-9
                for factor, value in product(scales, known)
            )
        ]
        for name, found in tables(paper).items()
    }
    assert not {name: found for name, found in unknown.items() if found}


@pytest.mark.skipif(not SPECIFICATIONS.is_dir(), reason="the specifications are not here")
@pytest.mark.parametrize("number", [89.6, 84.2, 87.1])  # of Serrano & Smith's table
def test_numbers_of_memory_are_not_among_the_confirmed_ones(number):
    assert number not in confirmed("serrano-snell-pruthi-drozdyuk.md")


@pytest.mark.skipif(not SPECIFICATIONS.is_dir(), reason="the specifications are not here")
@pytest.mark.parametrize("name", ["performance", "correlation"])
def test_the_result_files_are_the_authors(name):
    ours = files("heedmap.papers.jain_wallace").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    theirs = (SPECIFICATIONS / f"jain-wallace-{name}.csv").read_text(encoding="utf-8")
    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())
