"""The documentation site has a page for everything that it should, and for nothing else."""

import re
from pathlib import Path
from sys import modules

import pytest

import heedmap as hm
from heedmap.experiments.registry import registered

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {path.stem: path.read_text("utf-8") for path in (DOCS / "questions").glob("*.md")}
INDEX = PAGES.pop("index")
HEADINGS = [
    "Formula", "Direction", "Range", "Chance and best", "What it cannot tell", "Where we differ", "Source",
    "Where to see it", "A reading",
]  # fmt: skip


def tables():
    """The tables of each question: experiments that share a module ask the same."""
    found = {}
    for name, experiment in registered().items():
        found.setdefault(experiment.run.__module__, []).append(name)
    return {
        names[0] if len(names) == 1 else module.rpartition(".")[2]: (modules[module], names)
        for module, names in found.items()
    }


def test_every_question_has_a_page_and_every_page_a_question():
    assert sorted(PAGES) == sorted(tables())
    assert sorted(re.findall(r"^(\w+)$", INDEX, re.M)) == sorted(PAGES)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_asks_in_the_words_of_the_code_and_leaves_nothing_out(name):
    page, (module, names) = PAGES[name], tables()[name]
    title, _, rest = page.partition("\n")
    assert title == f"# {module.__doc__.splitlines()[0]}"
    assert rest.strip()[0].isupper(), "begins with a person's words"
    parts = re.split(r"^## (.+)\n", rest, flags=re.M)
    assert parts[1::2] == HEADINGS
    said = dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))
    assert all(said.values())
    assert "```math" in said["Formula"]
    file = module.__name__.rpartition(".")[2]
    assert f"../../src/heedmap/experiments/questions/{file}.py" in said["Source"]
    for table in names:
        assert f"](../columns.md#{table})" in said["Where to see it"]
    assert re.match(r"```console\n\$ heedmap \w+ ", said["A reading"]), "a command made it"
    assert page.count("\n") < 100


def test_everything_public_is_in_the_reference():
    text = (DOCS / "api.md").read_text("utf-8")
    described = re.findall(r"^\.\. auto\w+:: heedmap\.(\w+)$", text, re.M)
    assert sorted(described) == sorted(hm.__all__)


def test_links_between_pages_and_files_lead_somewhere():
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page, target)
