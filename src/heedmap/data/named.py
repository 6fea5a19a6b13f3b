"""The data sets of Jain & Wallace (2019): each with its columns, label rule, filter and recipe.

A data set is read from what the user has (a folder, a file, the Hub) by the paper's rules, or by those of
its released code, which differ: a limit that is not set is the split's own shortest or longest text, which
is then left out; of IMDB's test texts a fifth is taken, of long clinical ones the 5000 shortest; every word
is a possible answer to bAbI's questions. (docs/jain-wallace.md has all differences.)
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from heedmap.data import cloze, mimic
from heedmap.data import readers as files
from heedmap.data.babi import Story
from heedmap.data.babi_files import read_official, story_of
from heedmap.data.babi_rows import row_of
from heedmap.data.cleaning import cleaner, without_markup
from heedmap.data.rows import Reading, Row
from heedmap.data.tokens import words
from heedmap.errors import InputError
from heedmap.settings import DataSettings

Parts = dict[str, list[Row]]


@dataclass(frozen=True)
class Named:
    """One data set of the paper.

    Texts of `longer_than` tokens or fewer, or of `shorter_than` or more, are left out (both strict, as the
    paper has them); None is no limit. `labels` says which labels are kept and what class each one is;
    `classes` their order. With `trees` a folder may hold a treebank instead of a table. `recipe` is how the
    paper trains on it, beside its defaults. `published` are sizes by split and class that the authors' own
    files confirm. By the code's rules `code_share` of the test texts are taken, or the `code_most` shortest,
    and with `word_answers` every word is an answer.
    """

    title: str
    task: Literal["text", "question", "inference"]
    needs: str
    reading: Reading = field(default_factory=Reading)
    read: Callable[[Path], tuple[Parts, dict[str, int]]] | None = None
    trees: bool = False
    hub: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    longer_than: int | None = None
    shorter_than: int | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    code_share: float | None = None
    code_most: int | None = None
    word_answers: bool = False


def sst_tokens(text: str) -> list[str]:
    """Words and digits alone, lower-case; brackets are spelt out in the treebank."""
    bare = text.replace("-LRB-", "").replace("-RRB-", " ")
    return re.sub(r"\W", " ", bare).lower().split()


def _imdb_tokens(text: str) -> list[str]:
    return words(without_markup(text))


QA = {"epochs": 25, "batch_size": 100}
BABI = {
    "epochs": 100, "batch_size": 50, "embedding_size": 50, "hidden_size": 32, "min_df": 1,
}  # fmt: skip


def _read_babi(folder: Path, task: int) -> tuple[Parts, dict[str, int]]:
    if found := files.split_files(folder):
        told = {name: _stories(at) for name, at in found.items()}
    else:
        told = read_official(folder, task)
    return {
        name: [row_of(story, f"babi{task}-{name}-{i}") for i, story in enumerate(each)]
        for name, each in told.items()
    }, {}


def _stories(path: Path) -> list[Story]:
    stories = []
    for number, row in enumerate(files.read_rows(path), start=1):
        try:
            stories.append(story_of(row))
        except InputError as error:
            raise InputError(f"{path}, row {number}: {error}") from error
    return stories


def _babi(task: int) -> Named:
    return Named(
        f"bAbI {task}",
        "question",
        f"a folder of bAbI task {task} (train and test, the official text files or JSON lines); without one, "
        "stories are generated here",
        read=lambda folder: _read_babi(folder, task),
        recipe=BABI,
        word_answers=True,
    )


NAMED: dict[str, Named] = {
    "sst": Named(
        "SST",
        "text",
        "Stanford Sentiment Treebank: its own train.txt, dev.txt and test.txt of trees, or train, dev and test "
        "files with text and label (0, 1)",
        Reading(text=("jw_text", "text", "sentence"), tokenize=sst_tokens),
        trees=True,
        hub="SetFit/sst2",
        labels={"0": "negative", "1": "positive"},
        classes=("negative", "positive"),
        longer_than=5,
        recipe={"min_df": 1},
        published={"train": (3034, 3321), "test": (863, 862)},
    ),
    "imdb": Named(
        "IMDB",
        "text",
        "Large Movie Review Dataset: train and test files with text and label (0, 1)",
        Reading(tokenize=_imdb_tokens),
        hub="stanfordnlp/imdb",
        labels={"0": "negative", "1": "positive", "neg": "negative", "pos": "positive"},
        classes=("negative", "positive"),
        longer_than=6,
        shorter_than=400,
        recipe={"min_df": 10},
        published={"test": (2184, 2172)},
        code_share=0.2,
    ),
    "adr": Named(
        "ADR Tweets",
        "text",
        "adverse drug reactions in tweets: one file with text, label (0, 1) and split; the tweets are "
        "personal and not public: ask their authors",
        Reading(tokenize=cleaner),
        labels={"0": "none", "1": "reaction"},
        classes=("none", "reaction"),
        longer_than=5,
        shorter_than=100,
        recipe={"min_df": 2},
        published={"test": (3636, 487)},
    ),
    "news20_baseball_hockey": Named(
        "20 Newsgroups",
        "text",
        "20 Newsgroups without headers, footers and quotes: text and label (0 or rec.sport.baseball, 1 or "
        "rec.sport.hockey)",
        Reading(label=("label_text", "label"), tokenize=cleaner),
        hub="SetFit/20_newsgroups",
        labels={
            "0": "baseball", "rec.sport.baseball": "baseball",
            "1": "hockey", "rec.sport.hockey": "hockey",
        },
        classes=("baseball", "hockey"),
        longer_than=6,
        shorter_than=500,
        recipe={"min_df": 2},
        published={"test": (179, 178)},
    ),
    "ag_news": Named(
        "AG News",
        "text",
        "AG News: description (or text, which on the Hub has the title in it) and label (0 World, 2 Business; "
        "the others are left out)",
        Reading(text=("description", "text"), tokenize=cleaner),
        hub="fancyzhx/ag_news",
        labels={"0": "World", "2": "Business", "World": "World", "Business": "Business"},
        classes=("World", "Business"),
        recipe={"min_df": 5},
        published={"test": (1900, 1898)},
    ),
    "diabetes": Named(
        "Diabetes (MIMIC)",
        "text",
        "MIMIC-III (PhysioNet credentials): a folder with NOTEEVENTS.csv and DIAGNOSES_ICD.csv, and, for the "
        "paper's split, train/dev/test_50_hadm_ids.csv",
        read=lambda folder: mimic.read(folder, "diabetes"),
        classes=("0", "1"),
        longer_than=6,
        shorter_than=4000,
        recipe={"min_df": 5},
        published={"test": (1296, 319)},
        code_most=5000,
    ),
    "anemia": Named(
        "Anemia (MIMIC)",
        "text",
        "MIMIC-III (PhysioNet credentials): a folder with NOTEEVENTS.csv and DIAGNOSES_ICD.csv",
        read=lambda folder: mimic.read(folder, "anemia"),
        classes=("0", "1"),
        shorter_than=4000,
        recipe={"min_df": 5},
        published={"test": (460, 802)},
        code_most=5000,
    ),
    "cnn": Named(
        "CNN",
        "question",
        "CNN questions of the DeepMind Q&A data set: a folder with questions/training, validation and test",
        read=cloze.read,
        recipe={**QA, "batch_size": 90, "min_df": 8},
    ),
    "babi_qa1": _babi(1),
    "babi_qa2": _babi(2),
    "babi_qa3": _babi(3),
    "snli": Named(
        "SNLI",
        "inference",
        "Stanford Natural Language Inference: train, dev and test files with premise, hypothesis and label",
        Reading(text=("premise", "sentence1"), query=("hypothesis", "sentence2"),
                label=("label", "gold_label"), tokenize=words),
        hub="stanfordnlp/snli",
        labels={name: name for name in ("contradiction", "entailment", "neutral")},
        classes=("contradiction", "entailment", "neutral"),
        recipe={**QA, "batch_size": 128, "min_df": 3},
    ),
}  # fmt: skip


def named(settings: DataSettings) -> Named:
    """The data set that the settings name.

    Raises:
        InputError: no such data set.
    """
    if settings.dataset not in NAMED:
        raise InputError(f"--dataset: expected one of {', '.join(NAMED)}, got {settings.dataset}")
    return NAMED[settings.dataset]
