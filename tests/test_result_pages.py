"""Sentences of the result pages that state numbers of a table, held against that table."""

import re
from pathlib import Path

import pytest

from heedmap.papers.kit.claims import above, verdict_of_most
from heedmap.papers.kit.result import outside

PAGES = Path(__file__).parents[1] / "docs" / "results"
INTERVAL = re.compile(r"([+−-]?[\d.]+) \[([+−-]?[\d.]+), ([+−-]?[\d.]+)\]")


def page(name):
    return (PAGES / f"{name}.md").read_text()


def section(text, title):
    """The text below a heading, up to the next one."""
    return re.split(r"^#+ ", text.partition(f"{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def rows(text):
    """The cells of all lines of tables."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def numbers(cell):
    """A number and its interval."""
    return [float(x.replace("−", "-")) for x in INTERVAL.search(cell).groups()]


def short(number, digits=2):
    """A number as sentences write it: without the zero before the point."""
    return f"{number:.{digits}f}".replace("0.", ".")


def sentences(text):
    return " ".join(text.split())


def outside_of_pruthi(text):
    """Compare each table's line of ours with the authors' below it."""
    compared = []
    for model, training, source, *cells in (row for row in rows(text) if len(row) == 8):
        if source == "ours":
            ours = cells
        if source == "Pruthi et al.":
            compared += [
                (f"{model}, {training}, {what}", float(share[:-2]) / 100, tuple(numbers(own)[1:]))
                for what, share, own in zip(("accuracy", "mass"), cells, ours, strict=False)
                if share[0] not in "–\\"
            ]
    return outside(compared)


@pytest.mark.parametrize(
    "title",
    [
        "## Gender (pronoun)\n", "## Gender, the BiLSTM (pronoun)\n", "## Occupation\n",
        "## SST with an unrelated sentence (sst-filler)\n", "## Gender, a transformer (pronoun, bert)\n",
    ],
)  # fmt: skip
def test_what_pruthi_published_outside_of_our_intervals_stands_below_each_table(title):
    part = page("pruthi").partition(title)[2].partition("### Claim")[0]
    assert outside_of_pruthi(part)
    assert outside_of_pruthi(part) in part


def test_what_jain_and_wallace_published_outside_stands_in_the_notes():
    text = page("jain-wallace")
    named = []
    for cells in (row for row in rows(text) if len(row) == 11 and row[3] == "Overall"):
        for measure, theirs, inside in (("gradient", 4, 6), ("leave_one_out", 7, 9)):
            if cells[inside].strip("()") == "no":
                published = float(cells[theirs].partition("±")[0])
                named.append(f"{' '.join(cells[:3])}, attention~{measure} {published:.3f}")
    assert len(named) == 65 - 57
    assert f"Published and outside our interval: {'; '.join(named)}." in text


def test_the_order_of_the_imdb_models_is_as_the_sentence_says():
    models = [
        row for row in rows(section(page("jain-wallace"), "## IMDB and bAbI 3")) if len(row) == 10
    ]
    models = {f"{row[0]} + {row[1]}": row for row in models[2:]}

    def order(column):
        values = {name: float(row[column].replace("−", "-")) for name, row in models.items()}
        return sorted((name for name in values if values[name] == values[name]), key=values.get)

    def swapped(names, first, second):
        return [{first: second, second: first}.get(name, name) for name in names]

    ours = [name for name in order(5) if name in order(4)]  # τ with the gradient
    places = swapped(order(4), "cnn + dot", "lstm + additive")
    assert ours in (places, swapped(places, "cnn + dot", "cnn + additive"))  # both have .31
    ours = swapped(
        swapped(order(6), "lstm + additive", "cnn + additive"), "average + dot", "lstm + dot"
    )
    assert order(7) == ours
    assert (
        "in the published order but for cnn + dot and lstm + additive, which have changed places; by leave-one-"
        "out lstm + additive and cnn + additive have, and average + dot is last instead of lstm + dot."
    ) in sentences(page("jain-wallace"))


def test_f1_is_as_far_below_the_published_as_the_page_of_wiegreffe_and_pinter_says():
    text, below = page("wiegreffe-pinter"), []
    for cells in (row for row in rows(text) if len(row) == 3):
        if cells[0] == "ours":
            ours = [numbers(cell)[0] for cell in cells[1:]]
        if cells[0].endswith("Table 2"):
            below += [100 * (float(x) - own) for x, own in zip(cells[1:], ours, strict=True)]
    assert len(below) == 8
    assert f"F1 is {min(below):.0f} to {max(below):.0f} points below" in sentences(text)


def test_the_word_on_anti_correlation_follows_from_its_intervals():
    title = "An adversary's attention becomes anti-correlated with its explanations"
    text = page("wiegreffe-pinter").partition(f"### {title}")[2]
    sides = [
        above(tuple(numbers(line)[1:]))
        for line in text.splitlines()
        if line[:1] == "*" == line[:1] and "τ" in line
    ]
    assert len(sides) == 8
    assert f"**{verdict_of_most(sides).capitalize()}.**" in text


def test_shares_of_the_smallest_sets_are_those_of_the_tables():
    text = page("serrano-smith")
    shares = {
        title: {
            row[0]: float(row[6].split()[0])
            for row in rows(section(text, f"## {title}"))
            if len(row) == 10 and row[0][:3] in ("han", "fla")
        }
        for title in (
            "20 Newsgroups, baseball and hockey (three seeds)", "AG News (one seed)",
            "IMDB of Maas et al., two classes by sign (one seed)",
            "IMDB of Maas et al., eight classes by stars (one seed)",
        )
    }  # fmt: skip
    news, four, imdb, eight = shares.values()
    assert {*news.values(), *imdb.values()} == {1.0}
    gru = four.pop("flan-rnn")
    assert (
        "at 1.00 of the smallest sets with two classes; with four at "
        f"{short(min(four.values()))} to {short(max(four.values()))}, but for {short(gru)} of the flat GRU, "
        f"and with eight at {short(min(eight.values()))} to {short(max(eight.values()))}:"
    ) in sentences(text)


def test_what_snell_published_for_translation_is_outside_where_the_page_says():
    text = page("snell")
    table = [row for row in rows(section(text, "## Translators")) if len(row) == 4]
    named = {row[0].split(",")[0]: row for row in table if row[3][:1] == "." and "[" in row[1]}
    compared = [(name, float(row[3]), tuple(numbers(row[1])[1:])) for name, row in named.items()]
    assert outside(compared).count(";") + 1 == 4
    for name in ("A(β^px", "the models' own best", "the attention's accuracy when it is as far"):
        mean, low, high = (short(x, 3) for x in numbers(named[name][1]))
        assert f"{mean} [{low}, {high}] against {named[name][3]})" in sentences(text)
