"""Serrano & Smith's four data sets, in made-up files of the layouts in which they are published."""

import gzip
import json
from collections import Counter
from html import escape

import pytest
from wording import refused

from heedmap.data.catalog import CATALOG
from heedmap.data.load import load
from heedmap.data.yahoo_feed import NAME, PARTS, TOPICS, questions, read_feed

WORDS = [f"cue{letter}" for letter in "abcdefghij"]


def said(label, i):
    """Write a text whose first word tells its class."""
    return f"{WORDS[label]} it was on day {i}. We went, and stayed."


def written(fields):
    r"""Write a row as Zhang et al. do: fields in quotes, one within doubled, a line break as \n."""
    quoted = (str(field).replace('"', '""').replace("\n", "\\n") for field in fields)
    return ",".join(f'"{field}"' for field in quoted) + "\n"


def zhang(folder, classes, titles=0, train=30, test=10):
    """Write train.csv, test.csv and readme.txt: class, `titles` fields before the text, and the text."""
    folder.mkdir()
    for name, count in (("train", train), ("test", test)):
        rows = (
            (i % classes + 1, *[f"Title {n}" for n in range(titles)], said(i % classes, i))
            for i in range(count)
        )
        (folder / f"{name}.csv").write_text("".join(map(written, rows)))
    (folder / "readme.txt").write_text("Where it is from, and what it is.\n")
    return folder


def add(folder, *fields):
    with (folder / "train.csv").open("a") as file:
        file.write(written(fields))


def question(i, topic, content="Some more.", **changes):
    """Write a question as the feed has it, with answers that are not the best."""
    fields = {
        "subject": f"What of {i}?",
        "content": content,
        "bestanswer": said(i % 10, i),
        "maincat": topic,
    }
    fields |= changes
    own = "".join(
        f"<{name}>{escape(value)}</{name}>" for name, value in fields.items() if value is not None
    )
    return (
        f'<vespaadd><document type="wisdom"><uri>{1000 + i}</uri>{own}<nbestanswers><answer_item>No idea.'
        f"</answer_item></nbestanswers><id>u{i % 3}</id></document></vespaadd>\n"
    )


def feed(folder, questions_written, cut=None, gzipped=False):
    """Write the feed as its two parts, cut at a byte (by default the middle), or whole where `cut` is 0."""
    folder.mkdir(exist_ok=True)
    start, end = '<?xml version="1.0" encoding="UTF-8"?>\n<ystfeed>\n', "</ystfeed>\n"
    content = "".join([start, *questions_written, end]).encode()
    cut = len(content) // 2 if cut is None else cut
    parts = {PARTS[0]: content[:cut], PARTS[1]: content[cut:]} if cut else {NAME: content}
    for name, part in parts.items():
        if gzipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(part))
        else:
            (folder / name).write_bytes(part)
    return folder


FEED = [question(i, TOPICS[i % 10]) for i in range(200)]


def imdb(folder, rows, *, lines=False):
    folder.mkdir()
    text = "\n".join(map(json.dumps, rows)) if lines else json.dumps(rows)
    (folder / "data.json").write_text(text)
    return folder


def reviews(count=200):
    return [
        {
            "rating": i % 10 + 1,
            "title": "Seen",
            "movie": f"tt{i}",
            "review": said(i % 10, i),
            "user": f"ur{i}",
        }
        for i in range(count)
    ]


LAYOUTS = {
    "imdb-10": ("imdb-10", lambda path: imdb(path, reviews())),
    "imdb-10 lines": ("imdb-10", lambda path: imdb(path, reviews(), lines=True)),
    "yahoo feed": ("yahoo", lambda path: feed(path, FEED)),
    "yahoo feed.gz": ("yahoo", lambda path: feed(path, FEED, gzipped=True)),
    "yahoo whole": ("yahoo", lambda path: feed(path, FEED, cut=0)),
    "yahoo csv": ("yahoo", lambda path: zhang(path, 10, 2, train=120, test=20)),
    "amazon": ("amazon", lambda path: zhang(path, 5, 1)),
    "yelp": ("yelp", lambda path: zhang(path, 5)),
}
SIZES = {
    "imdb-10": (160, 20, 20), "yahoo feed": (170, 20, 10), "yahoo csv": (110, 10, 20), "amazon": (25, 5, 10),
    "yelp": (25, 5, 10),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tokenizer", ["words", "sentences"])
def test_each_layout_is_read_with_its_classes_and_the_papers_splits(tmp_path, layout, tokenizer):
    name, write = LAYOUTS[layout]
    corpus = load(write(tmp_path / "data"), dataset=name, tokenizer=tokenizer)
    assert corpus.classes == list(CATALOG[name].classes)
    assert (corpus.left_out, corpus.notes) == ({}, [])
    sizes = SIZES.get(layout) or SIZES["imdb-10" if name == "imdb-10" else "yahoo feed"]
    assert tuple(len(corpus.splits[part]) for part in ("train", "dev", "test")) == sizes
    keys: Counter[str] = Counter()
    for split in corpus.splits.values():
        keys.update(split.keys)
        for tokens, label in zip(split.tokens, split.labels, strict=True):
            text = " ".join(tokens)
            assert [word for word in WORDS if word in text] == [WORDS[label]]
    if "csv" not in layout and name in ("imdb-10", "yahoo"):
        assert len(keys) == 200  # each text once: no part is read twice


def test_a_text_is_its_title_and_content_with_line_breaks_and_quotes_and_without_tags(tmp_path):
    folder = zhang(tmp_path / "a", 5, 1, train=0)
    add(folder, 1, 'A "good" one', 'So \\"true\\".\nAnd more.<br />The end.')
    add(folder, 2, "", "No title")
    add(folder, 3, "A title alone", "")
    add(folder, 4, "", "")
    for i in range(30):
        add(folder, i % 5 + 1, "T", said(i % 5, i))
    corpus = load(folder, dataset="amazon")
    texts = {text for part in ("train", "dev") for text in corpus.splits[part].written}
    assert {'A "good" one\n\nSo "true".\nAnd more. The end.', "No title", "A title alone"} <= texts
    assert corpus.left_out == {"empty title,content": 1}


def test_what_a_user_says_of_the_file_and_its_columns_holds(tmp_path):
    folder = zhang(tmp_path / "a", 5, 1)
    one = load(folder, dataset="amazon", text="content")
    assert all("title" not in text for text in one.splits["train"].tokens)
    other = load(folder, dataset="amazon", header="none", text="3", label="1")
    assert other.splits["test"].tokens == one.splits["test"].tokens


def test_files_with_a_header_are_read_by_their_names_and_the_hubs_names_of_stars_are_classes(
    tmp_path,
):
    for name in ("train", "test"):
        rows = "".join(
            f'{i % 5 + 1} star{"s" * (i % 5 > 1)},"{said(i % 5, i)}"\n' for i in range(60)
        )
        (tmp_path / f"{name}.csv").write_text("label,text\n" + rows)
    corpus = load(tmp_path, dataset="yelp")
    assert corpus.classes == ["1", "2", "3", "4", "5"]
    assert corpus.splits["test"].labels.tolist() == [0, 1, 2, 3, 4] * 12


def test_labels_that_are_counted_from_0_are_refused(tmp_path):
    for name in ("train", "test"):
        rows = [{"text": said(i % 5, i), "label": i % 5} for i in range(50)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with refused("labels from 1 to 5", "from 0 on"):
        load(tmp_path, dataset="yelp")


def test_classes_that_are_none_are_counted(tmp_path):
    folder = zhang(tmp_path / "a", 5)
    for label in (0, 6, "x", ""):
        add(folder, label, "A text.")
    corpus = load(folder, dataset="yelp")
    reasons = {f"train: label {label} is not one of Yelp's": 1 for label in (0, 6, "x")}
    assert corpus.left_out == {**reasons, "train: label missing": 1}


def test_a_missing_test_file_another_data_set_and_broken_rows_are_refused_in_one_line(tmp_path):
    folder = zhang(tmp_path / "a", 5, 1)
    with refused("test.csv, line 1", "2 fields (label, text)", "got 3"):
        load(folder, dataset="yelp")
    (folder / "test.csv").unlink()
    with refused(folder, "no test.csv", "amazon_review_full_csv"):
        load(folder, dataset="amazon")
    for broken, line in ((b'"1","never closed\n', 31), (b'"1","T","caf\xe9"\n', 1)):
        other = zhang(tmp_path / f"b{line}", 5, 1)
        with (other / "train.csv").open("ab") as file:
            file.write(broken)
        with refused("train.csv", "line", "UTF-8", "quotes"):
            load(other, dataset="amazon")


def test_ratings_that_are_missing_or_none_are_counted_and_empty_reviews_too(tmp_path):
    rows = reviews()
    for i, rating in enumerate((None, 0, 11, 7.0)):
        rows[i]["rating"] = rating
    rows[4]["review"] = ""
    rows[5]["review"] = None
    corpus = load(imdb(tmp_path / "a", rows), dataset="imdb-10")
    assert corpus.left_out == {
        "label missing": 1, "empty review": 2, "all: label 0 is not one of IMDB of Diao et al.'s": 1,
        "all: label 11 is not one of IMDB of Diao et al.'s": 1,
    }  # fmt: skip
    assert sum(map(len, corpus.splits.values())) == 195


def test_a_question_is_its_own_elements_wherever_the_feed_is_cut(tmp_path):
    written_questions = [
        question(0, "Sports", 'Caf\u00e9 & <b>more</b><br />\n"so"'),
        question(1, "Health", None),
        question(2, None, ""),
    ]
    whole = list(questions([feed(tmp_path / "whole", written_questions, cut=0) / NAME]))
    assert [one["uri"] for one in whole] == ["1000", "1001", "1002"]
    assert whole[0]["content"] == 'Caf\u00e9 & <b>more</b><br />\n"so"'
    assert whole[0]["bestanswer"] == said(0, 0)
    assert "content" not in whole[1]
    assert whole[2]["content"] == ""
    assert "maincat" not in whole[2]
    size = (tmp_path / "whole" / NAME).stat().st_size
    for cut in range(1, size):
        folder = feed(tmp_path / "cut", written_questions, cut=cut)
        assert list(questions([folder / name for name in PARTS])) == whole


def test_other_topics_and_questions_without_one_are_counted_and_named(tmp_path):
    more = [question(200 + i, topic) for i, topic in enumerate(["Travel"] * 3 + ["Pets", None])]
    corpus = load(feed(tmp_path / "a", [*FEED, *more]), dataset="yahoo")
    assert corpus.left_out == {"topic missing": 1, "topic is none of the 10 (Travel, Pets)": 4}


def test_of_a_large_topic_a_sample_is_drawn_in_which_each_question_is_as_likely(tmp_path):
    folder = feed(tmp_path / "a", [question(i, TOPICS[i % 2]) for i in range(40)])
    counts: Counter[str] = Counter()
    for seed in range(400):
        tables = read_feed(folder, seed, most=5)
        drawn = tables.by_split["all"].values("id")
        assert len(drawn) == len(set(drawn)) == 10
        assert drawn == sorted(drawn)  # as the feed has them
        counts.update(drawn)
    assert tables.left_out == {f"topic {TOPICS[i]}: not drawn": 15 for i in (0, 1)}
    assert len(counts) == 40
    assert all(60 < count < 145 for count in counts.values())  # of 100: five standard deviations
    first, again, other = (
        read_feed(folder, seed, most=5).by_split["all"].values("id") for seed in (0, 0, 1)
    )
    assert first == again != other


def test_one_part_alone_is_refused_with_the_other(tmp_path):
    folder = feed(tmp_path / "a", FEED, gzipped=True)
    with refused(f"{PARTS[0]}.gz", "two parts", "the folder"):
        load(folder / f"{PARTS[0]}.gz", dataset="yahoo")
    (folder / f"{PARTS[0]}.gz").unlink()
    with refused(folder, f"{PARTS[1]}.gz alone", PARTS[0]):
        load(folder, dataset="yahoo")


def test_a_feed_that_is_no_xml_or_ends_early_or_declares_entities_is_refused(tmp_path):
    folder = feed(tmp_path / "a", FEED)
    second = folder / PARTS[1]
    whole = second.read_bytes()
    second.write_bytes(whole[:-30])
    with refused(folder / NAME, "line", "XML"):
        load(folder, dataset="yahoo")
    second.write_bytes(b"<<" + whole)
    with refused(folder / NAME, "line", "XML"):
        load(folder, dataset="yahoo")
    for name in PARTS:
        (folder / name).unlink()
    laughs = '<!DOCTYPE ystfeed [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>\n<ystfeed>&b;</ystfeed>'
    (folder / NAME).write_text(laughs)
    with refused(NAME, "document type", "entities"):
        load(folder, dataset="yahoo")


@pytest.mark.parametrize("name", ["imdb-10", "yahoo", "amazon", "yelp"])
def test_a_data_set_that_is_not_there_says_what_it_needs(tmp_path, name):
    for place in (tmp_path, tmp_path / "nothing.csv"):
        with refused(CATALOG[name].needs.split(":")[0]):
            load(place, dataset=name)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["imdb-10", "yahoo feed.gz", "yahoo csv", "amazon", "yelp"])
def test_the_papers_models_are_trained_on_each(heedmap, tmp_path, layout):
    name, write = LAYOUTS[layout]
    out = tmp_path / "out"
    said_by = heedmap(
        "reproduce", "serrano-smith", name, "--data", write(tmp_path / "data"), "--epochs", 1, "--models",
        "han-none,flan-none", "--train-texts", 20, "--test-texts", 10, "--workers", 1, "--out", out,
    )  # fmt: skip
    assert said_by.code == 0, said_by.err
    dev = 5 if layout in ("amazon", "yelp") else 10
    assert f"train 20, dev {dev}, test 10." in said_by.out
    text = (out / "result.md").read_text(encoding="utf-8")
    assert "not in the paper" not in text
    assert "another IMDB" not in text
