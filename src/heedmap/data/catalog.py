"""The data sets with a name: their columns, labels, splits and sources, and which texts are read.

Most have two `Selection`s, the paper's (Jain & Wallace, 2019) and that of its released code, by the names that
the setting `rules` has for them. They are here and not with the paper because a run reads its texts again
when it is opened. What the paper trains and audits a data set with is in `papers/jain_wallace`.
(docs/jain-wallace.md has all differences.) The last four are Serrano & Smith's (2019): which of their texts
are too long to train on is counted in sentences, and is in `papers/serrano_smith`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from heedmap.data import babi_rows, cloze, mimic
from heedmap.data.columns import Tables
from heedmap.data.headerless import read_headerless, unescaped
from heedmap.data.readers import read_rows
from heedmap.data.rows import ColumnSpec, Parts
from heedmap.data.streams import plain_or_gzipped
from heedmap.data.tokens import (
    clinical_words,
    without_markup,
    words,
    words_alone,
    words_without_digits,
)
from heedmap.data.yahoo_feed import TEST, TOPICS, TRAIN_DEV, read_feed
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings


@dataclass(frozen=True)
class Selection:
    """Which texts of a data set are read, and which classes they may have.

    Texts of `longer_than` tokens or fewer, or of `shorter_than` or more, are left out (both strict, as the
    paper has them); None is no limit, or, with `without_extremes`, the shortest or longest text of the split.
    Of the test texts a random `test_share` is read, or the `test_shortest`. With `every_word` all words of the
    training texts are classes.
    """

    longer_than: int | None = None
    shorter_than: int | None = None
    without_extremes: bool = False
    test_share: float | None = None
    test_shortest: int | None = None
    every_word: bool = False

    @property
    def of_splits(self) -> bool:
        """Return whether it depends on the other texts of a split, so that all splits are drawn first."""
        return bool(
            self.without_extremes or self.test_share or self.test_shortest or self.every_word
        )


@dataclass(frozen=True)
class DatasetSpec:
    """A data set.

    `labels` says which labels are kept and what class each one is; `classes` their order. With `trees` a folder
    may hold a treebank instead of a table. `read_published` reads the files as they are published, given their
    place and a seed; it returns None for others, which are read as any user's. `shares` are the sizes of
    splits that are drawn, where they are not the usual ones. `selections` are by the setting `rules`.
    `candidates` finds a text's possible answers among its tokens.
    """

    title: str
    task: Literal["text", "question", "inference"]
    needs: str
    columns: ColumnSpec = field(default_factory=ColumnSpec)
    read_folder: Callable[[Path], tuple[Parts, dict[str, int]]] | None = None
    read_published: Callable[[Path, int], Tables | None] | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    trees: bool = False
    hub: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    selections: Mapping[str, Selection] = field(default_factory=dict)
    candidates: Callable[[Sequence[str]], Sequence[str]] | None = None

    def selection(self, settings: DataSettings) -> Selection:
        """Return the selection that the settings ask for: everything where the data set has none."""
        return self.selections.get(settings.rules, Selection())


def _by_length(
    longer_than: int | None = None, shorter_than: int | None = None, **of_code: Any
) -> dict[str, Selection]:
    """Return the paper's selection of single texts, and its released code's."""
    return {
        "paper": Selection(longer_than, shorter_than),
        "code": Selection(longer_than, shorter_than, without_extremes=True, **of_code),
    }


def _babi(task: int) -> DatasetSpec:
    return DatasetSpec(
        f"bAbI {task}",
        "question",
        f"a folder of bAbI task {task} (train and test, the official text files or JSON lines); without one, "
        "stories are generated here",
        ColumnSpec(tokenize=babi_rows.tokenize),
        read_folder=lambda folder: babi_rows.read_babi(folder, task),
        selections={"code": Selection(every_word=True)},
    )


_DEV = {"dev_share": 0.1}


def _read_jmars(path: Path, seed: int) -> Tables | None:
    file = plain_or_gzipped(path / "data.json")
    return None if file is None else Tables({"all": read_rows(file)})


def _read_yahoo(path: Path, seed: int) -> Tables | None:
    names = ("topic", "question_title", "question_content", "best_answer")
    return read_feed(path, seed) or read_headerless(path, names, len(TOPICS))


def _stars(title: str, archive: str, columns: Sequence[str], hub: str | None = None) -> DatasetSpec:
    """Return a data set of reviews with one to five stars, of Zhang et al. (2015)."""
    stars = "12345"
    return DatasetSpec(
        title,
        "text",
        f"the folder {archive} of Zhang et al. (2015), unpacked: train.csv and test.csv, without a header; or "
        f"train and test files with {', '.join(columns)} and label (1 to 5)",
        ColumnSpec(text=(",".join(columns),), label=("label",), clean=unescaped),
        read_published=lambda path, _: read_headerless(path, ("label", *columns), len(stars)),
        shares=_DEV,
        hub=hub,
        labels={n: n for n in stars}
        | {f"{n} star{plural}": n for n in stars for plural in ("", "s")},
        classes=tuple(stars),
    )


CATALOG: dict[str, DatasetSpec] = {
    "sst": DatasetSpec(
        "SST",
        "text",
        "Stanford Sentiment Treebank: its own train.txt, dev.txt and test.txt of trees, or train, dev and test "
        "files with text and label (0, 1)",
        ColumnSpec(text=("jw_text", "text", "sentence"), tokenize=words_alone),
        trees=True,
        hub="SetFit/sst2",
        labels={"0": "negative", "1": "positive"},
        classes=("negative", "positive"),
        selections=_by_length(5),
    ),
    "imdb": DatasetSpec(
        "IMDB",
        "text",
        "Large Movie Review Dataset: its own folders, or train and test files with text and label (0, 1)",
        ColumnSpec(tokenize=lambda text: words(without_markup(text))),
        hub="stanfordnlp/imdb",
        labels={"0": "negative", "1": "positive", "neg": "negative", "pos": "positive"},
        classes=("negative", "positive"),
        selections=_by_length(6, 400, test_share=0.2),
    ),
    "adr": DatasetSpec(
        "ADR Tweets",
        "text",
        "adverse drug reactions in tweets: one file with text, label (0, 1) and split; the tweets are "
        "personal and not public: ask their authors",
        ColumnSpec(tokenize=words_without_digits),
        labels={"0": "none", "1": "reaction"},
        classes=("none", "reaction"),
        selections=_by_length(5, 100),
    ),
    "news20_baseball_hockey": DatasetSpec(
        "20 Newsgroups",
        "text",
        "20 Newsgroups without headers, footers and quotes: text and label (0 or rec.sport.baseball, 1 or "
        "rec.sport.hockey)",
        ColumnSpec(label=("label_text", "label"), tokenize=words_without_digits),
        hub="SetFit/20_newsgroups",
        labels={
            "0": "baseball", "rec.sport.baseball": "baseball",
            "1": "hockey", "rec.sport.hockey": "hockey",
        },
        classes=("baseball", "hockey"),
        selections=_by_length(6, 500),
    ),
    "ag_news": DatasetSpec(
        "AG News",
        "text",
        "AG News: description (or text, which on the Hub has the title in it) and label (0 World, 2 Business; "
        "the others are left out)",
        ColumnSpec(text=("description", "text"), tokenize=words_without_digits),
        hub="fancyzhx/ag_news",
        labels={"0": "World", "2": "Business", "World": "World", "Business": "Business"},
        classes=("World", "Business"),
        selections=_by_length(),
    ),
    "diabetes": DatasetSpec(
        "Diabetes (MIMIC)",
        "text",
        "MIMIC-III (PhysioNet credentials): a folder with NOTEEVENTS.csv and DIAGNOSES_ICD.csv, and, for the "
        "paper's split, train/dev/test_50_hadm_ids.csv",
        ColumnSpec(tokenize=clinical_words),
        read_folder=lambda folder: mimic.read(folder, "diabetes"),
        classes=("0", "1"),
        selections=_by_length(6, 4000, test_shortest=5000),
    ),
    "anemia": DatasetSpec(
        "Anemia (MIMIC)",
        "text",
        "MIMIC-III (PhysioNet credentials): a folder with NOTEEVENTS.csv and DIAGNOSES_ICD.csv",
        ColumnSpec(tokenize=clinical_words),
        read_folder=lambda folder: mimic.read(folder, "anemia"),
        classes=("0", "1"),
        selections=_by_length(None, 4000, test_shortest=5000),
    ),
    "cnn": DatasetSpec(
        "CNN",
        "question",
        "CNN questions of the DeepMind Q&A data set: a folder with questions/training, validation and test",
        ColumnSpec(tokenize=cloze.tokenize),
        read_folder=cloze.read,
        candidates=cloze.entities,
    ),
    "babi_qa1": _babi(1),
    "babi_qa2": _babi(2),
    "babi_qa3": _babi(3),
    "snli": DatasetSpec(
        "SNLI",
        "inference",
        "Stanford Natural Language Inference: train, dev and test files with premise, hypothesis and label",
        ColumnSpec(text=("premise", "sentence1"), query=("hypothesis", "sentence2"),
                label=("label", "gold_label"), tokenize=words),
        hub="stanfordnlp/snli",
        labels={name: name for name in ("contradiction", "entailment", "neutral")},
        classes=("contradiction", "entailment", "neutral"),
    ),
    "imdb-10": DatasetSpec(
        "IMDB of Diao et al.",
        "text",
        "the reviews of Diao et al. (2014, JMARS): data.json, or its folder, with review and rating (1 to 10)",
        ColumnSpec(text=("review",), label=("rating",), clean=without_markup),
        read_published=_read_jmars,
        shares={"test_share": 0.1, "dev_share": 1 / 9},
        labels={str(n): str(n) for n in range(1, 11)},
        classes=tuple(str(n) for n in range(1, 11)),
    ),
    "yahoo": DatasetSpec(
        "Yahoo Answers",
        "text",
        "Yahoo! Webscope L6: a folder with FullOct2007.xml, or with its .part1 and .part2 (also .gz); or the "
        "folder yahoo_answers_csv of Zhang et al. (2015), unpacked: train.csv and test.csv, without a header; "
        "or train and test files with question_title, question_content, best_answer and topic",
        ColumnSpec(text=("question_title,question_content,best_answer",), label=("topic",), clean=unescaped),
        read_published=_read_yahoo,
        shares={"test_share": TEST / (TRAIN_DEV + TEST), **_DEV},
        hub="community-datasets/yahoo_answers_topics",
        labels={topic: topic for topic in TOPICS} | {str(n): topic for n, topic in enumerate(TOPICS, 1)},
        classes=TOPICS,
    ),
    "amazon": _stars("Amazon", "amazon_review_full_csv", ("title", "content")),
    "yelp": _stars(
        "Yelp", "yelp_review_full_csv", ("text",), "Yelp/yelp_review_full"
    ),
}  # fmt: skip


def spec_of(settings: DataSettings) -> DatasetSpec:
    """Look up the data set that the settings name.

    Raises:
        InputError: no such data set.
    """
    if settings.dataset not in CATALOG:
        raise InputError(f"--dataset: expected one of {', '.join(CATALOG)}, got {settings.dataset}")
    return CATALOG[settings.dataset]
