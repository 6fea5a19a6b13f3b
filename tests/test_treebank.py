"""The Stanford Sentiment Treebank as it is published, read as the data set `sst`."""

import pytest
from wording import refused

from heedmap.data.load import load


def tree(words, label):
    """Right-branching, as deep as the text is long; nodes below the root have labels of their own."""
    *rest, last = words
    inner = f"(2 {last})"
    for word in reversed(rest):
        inner = f"(4 (1 {word}) {inner})"
    return f"({label}{inner[2:]}"


GOOD = ["It", "'s", "a", "lovely", "film", "-LRB-", "with", "brackets", "-RRB-", "."]
LONG = ["one", "two", "three", "four", "five", "six", "seven"]


@pytest.fixture
def treebank(tmp_path):
    lines = [
        tree(GOOD, 4),
        tree(LONG, 0),
        tree(LONG, 2),
        tree(LONG, 3),
        tree(LONG, 1),
        tree(["No"], 0),
    ]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n\n")
    return tmp_path


def test_a_text_is_its_trees_leaves_and_its_class_the_root_s(treebank):
    corpus = load(treebank, dataset="sst")
    split = corpus.splits["train"]
    assert corpus.classes == ["negative", "positive"]
    assert split.labels.tolist() == [1, 0, 1, 0]
    assert split.tokens[0] == ["it", "s", "a", "lovely", "film", "with", "brackets"]
    assert split.tokens[1] == LONG
    assert corpus.left_out["test: neither negative nor positive"] == 1
    assert corpus.left_out["test: not more than 5 tokens"] == 1


def test_a_leaf_may_hold_a_space_that_does_not_break(treebank):
    lines = [tree([*LONG[:-1], "8\xa01\\/2"], 4), tree([*LONG, "a\u2028b"], 0)]
    (treebank / "dev.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert load(treebank, dataset="sst").splits["dev"].tokens == [
        [*LONG[:-1], "8", "1", "2"],
        [*LONG, "a", "b"],
    ]


@pytest.mark.parametrize(
    "line",
    ["a text without a tree", "(3 )", "(3 (2 It) (2 works)", "(7 (2 It) (2 works))", "(3 It"],
)
def test_a_line_that_is_no_tree_is_named(treebank, line):
    with (treebank / "dev.txt").open("a") as file:
        file.write(line + "\n")
    with refused("dev.txt, line 8", "(3 (2 It) (4 works))"):
        load(treebank, dataset="sst")


def test_a_treebank_that_is_not_utf8_or_names_columns_is_refused(treebank):
    with refused("--text-column sentence", "leave it out"):
        load(treebank, dataset="sst", text="sentence")
    (treebank / "test.txt").write_bytes(b"(3 (2 caf\xe9) (2 works))")
    with refused("test.txt", "UTF-8"):
        load(treebank, dataset="sst")
