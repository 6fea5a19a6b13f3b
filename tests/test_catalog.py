"""The papers' data sets: label rules, filters and splits, on files in their layouts and on real ones."""

import json

import numpy as np
import pytest
from wording import refused

from heedmap.data.catalog import CATALOG
from heedmap.data.load import load
from heedmap.data.tokens import words_alone
from heedmap.errors import InputError
from heedmap.papers.jain_wallace.published import PUBLISHED_SIZES


def words(count, first="w"):
    return " ".join(f"{first}{chr(97 + i % 26)}" for i in range(count))


@pytest.fixture
def folder(tmp_path):
    """Writes train, dev and test files: folder(train=[{...}], ...)."""

    def write(**parts):
        for name, rows in parts.items():
            text = "\n".join(json.dumps(row) for row in rows)
            (tmp_path / f"{name}.jsonl").write_text(text + "\n")
        return tmp_path

    return write


def both(sizes, labels=(0, 1), **more):
    return [{"text": words(n), "label": y, **more} for n in sizes for y in labels]


def test_a_filter_is_strict_at_both_ends_and_counts_what_it_drops(folder):
    rows = both([6, 7, 499, 500, 501])
    source = folder(train=rows, dev=rows, test=rows)
    corpus = load(source, dataset="news20_baseball_hockey")
    assert sorted({len(t) for t in corpus.splits["train"].tokens}) == [7, 499]
    assert corpus.left_out["train: not more than 6 tokens"] == 2
    assert corpus.left_out["train: not fewer than 500 tokens"] == 4
    assert corpus.classes == ["baseball", "hockey"]


def test_by_the_codes_rules_a_missing_limit_is_the_splits_own_shortest_and_longest_text(folder):
    rows = both([3, 5, 6, 9, 12])
    source = folder(train=rows, dev=rows, test=rows[2:])
    assert len(load(source, dataset="sst").splits["train"]) == 6
    by_code = load(source, dataset="sst", rules="code")
    assert sorted({len(t) for t in by_code.splits["train"].tokens}) == [6, 9]
    assert by_code.left_out["train: not fewer than 12 tokens"] == 2


def test_by_the_codes_rules_a_fifth_of_imdbs_test_texts_is_taken(folder):
    rows = both(range(7, 57))
    source = folder(train=rows, dev=rows, test=rows)
    corpus = load(source, dataset="imdb", rules="code")
    assert len(corpus.splits["test"]) == 20
    assert corpus.left_out["test: not drawn into the code's sample"] == 80
    assert len(corpus.splits["dev"]) == 100


def test_by_the_codes_rules_every_word_of_a_story_is_a_possible_answer(real_data):
    place = real_data / "babi_qa1"
    assert len(load(place, dataset="babi_qa1").classes) == 6
    by_code = load(place, dataset="babi_qa1", rules="code")
    assert len(by_code.classes) == 20
    assert {"mary", "where", ".", "office"} <= set(by_code.classes)


def test_ag_news_keeps_two_of_four_classes_in_the_papers_order_and_reads_descriptions(folder):
    rows = [
        {"text": f"title {words(4)}", "description": words(4, first=f"x{y}"), "label": y}
        for y in range(4)
    ]
    rows.append({"text": "a title alone", "label": 2})
    corpus = load(folder(train=rows, dev=rows, test=rows), dataset="ag_news")
    assert corpus.classes == ["World", "Business"]
    assert corpus.splits["test"].labels.tolist() == [0, 1]
    assert all("title" not in tokens for tokens in corpus.splits["train"].tokens)
    assert corpus.left_out["test: label 1 is not one of AG News's"] == 1
    assert corpus.left_out["empty description"] == 3


def test_words_with_digits_are_one_word(folder):
    rows = [{"text": f"On 12 May 1997 they won 3 games {words(4)}", "label": y} for y in (0, 1)]
    corpus = load(folder(train=rows, dev=rows, test=rows), dataset="news20_baseball_hockey")
    assert corpus.splits["train"].tokens[0][:8] == [
        "on", "qqq", "may", "qqq", "they", "won", "qqq", "games",
    ]  # fmt: skip


def test_sst_keeps_words_alone():
    assert words_alone("-LRB- It 's n't GOOD -RRB- !") == ["it", "s", "n", "t", "good"]


def test_inference_reads_the_premise_given_the_hypothesis_and_counts_what_has_no_label(folder):
    rows = [
        {"premise": "A man sleeps .", "hypothesis": "He rests .", "label": name}
        for name in ("neutral", "contradiction", "entailment", "-")
    ]
    corpus = load(folder(train=rows, dev=rows, test=rows), dataset="snli")
    assert corpus.classes == ["contradiction", "entailment", "neutral"]
    split = corpus.splits["test"]
    assert split.labels.tolist() == [2, 0, 1]
    assert split.tokens[0] == ["a", "man", "sleeps", "."]
    assert split.queries[0] == ["he", "rests", "."]
    assert corpus.left_out["test: label - is not one of SNLI's"] == 1


def test_stories_are_generated_or_read_and_their_supporting_facts_are_the_rationale(tmp_path):
    corpus = load("babi_qa1")
    assert {name: len(split) for name, split in corpus.splits.items()} == {
        "train": 9000, "dev": 1000, "test": 1000,
    }  # fmt: skip
    split = corpus.splits["test"]
    for i in range(50):
        told = [w for w, known in zip(split.tokens[i], split.rationale[i], strict=True) if known]
        assert told[-1] == corpus.classes[split.labels[i]]
        assert told[0] == split.queries[i][-1]
    for name in ("train", "test"):
        lines = [f"{n} Mary went to the {p}." for n, p in ((1, "garden"), (2, "office"))]
        lines.append("3 Where is Mary? \toffice\t2")
        lines += ["1 John went to the garden.", "2 Where is John? \tgarden\t1"] * 9
        (tmp_path / f"qa1_single-supporting-fact_{name}.txt").write_text("\n".join(lines) + "\n")
    official = load(tmp_path, dataset="babi_qa1")
    assert official.classes == ["garden", "office"]
    assert len(official.splits["test"]) == 10


def test_a_broken_story_is_named_with_its_row(tmp_path):
    row = {
        "story": ["Mary moved ."],
        "question": "Where is Mary ?",
        "answer": "hall",
        "supporting": [5],
    }
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n")
    with refused("train.jsonl, row 1", "supporting", "'[5]'"):
        load(tmp_path, dataset="babi_qa1")


def test_training_texts_of_one_class_are_refused_with_what_was_left_out(folder):
    rows = both([9, 10, 11], labels=(0, "positive"))
    rows = [{**row, "label": str(row["label"])} for row in rows]
    with refused("two classes", "1 (negative)", "label positive", "SST", "3"):
        load(folder(train=rows, dev=rows, test=rows), dataset="sst")


def test_an_answer_that_is_not_among_the_candidates_is_refused_with_its_row(tmp_path):
    for part in ("training", "validation", "test"):
        place = tmp_path / "questions" / part
        place.mkdir(parents=True)
        (place / "one.question").write_text(
            "http://x\n\n@entity1 met @entity2 .\n\n@placeholder met @entity2\n\n@entity7\n\n@entity1:A\n"
        )
    with refused("one.question", "'@entity7'"):
        load(tmp_path, dataset="cnn")


def test_cloze_candidates_are_the_articles_entities(tmp_path):
    for part in ("training", "validation", "test"):
        place, seen = tmp_path / "questions" / part, "@entity9" if part == "test" else "nobody"
        place.mkdir(parents=True)
        for i, (article, answer) in enumerate(
            (("@entity1 met @entity2 .", "@entity1"), (f"@entity3 saw {seen} .", "@entity3"))
        ):
            (place / f"{i}.question").write_text(
                f"http://x\n\n{article}\n\n@placeholder left\n\n{answer}\n\n@entity1:A\n"
            )
    corpus = load(tmp_path, dataset="cnn")
    split = corpus.splits["test"]
    # An entity that is never the answer in training is still a wrong answer that can be given.
    assert corpus.classes == ["@entity1", "@entity2", "@entity3"]
    assert split.allowed.tolist() == [[True, True, False], [False, False, True]]
    assert corpus.left_out == {"test: possible answers never seen in training": 1}


def test_by_the_codes_rules_a_single_file_is_split_before_its_limits_are_taken(tmp_path):
    rows = [{"text": f"a{i} " * (6 + i % 30), "label": i % 2} for i in range(120)]
    (tmp_path / "sst.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = load(tmp_path / "sst.jsonl", dataset="sst", rules="code")
    for name, split in corpus.splits.items():
        assert (
            corpus.left_out[f"{name}: not fewer than {1 + max(map(len, split.tokens))} tokens"] > 0
        )


def test_generated_stories_have_every_word_as_an_answer_by_the_codes_rules():
    corpus = load("babi_qa1", dataset="babi_qa1", rules="code", train_texts=100, test_texts=60)
    assert "moved" in corpus.classes
    assert corpus.splits["test"].allowed is None


def test_a_sample_of_one_class_is_refused(tmp_path):
    rows = [{"text": "one two three four five six seven", "label": int(i == 0)} for i in range(60)]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with refused("two classes", "5 texts", "1 (negative)"):
        load(tmp_path, dataset="sst", train_texts=5)


def test_entities_of_articles_that_were_not_drawn_are_no_answers(tmp_path):
    for part in ("training", "validation", "test"):
        place = tmp_path / "questions" / part
        place.mkdir(parents=True)
        for i in range(6):
            (place / f"{i}.question").write_text(
                f"http://x\n\n@entity{i} met @entity1{i} .\n\n@placeholder left\n\n@entity{i}\n\n@entity1:A\n"
            )
    corpus = load(tmp_path, dataset="cnn", train_texts=3)
    drawn = {word for tokens in corpus.splits["train"].tokens for word in tokens if word[0] == "@"}
    assert len(drawn) == 6
    assert set(corpus.classes) == drawn
    assert corpus.left_out["test: class never seen in training"] == 3


@pytest.mark.parametrize("name", ["sst", "diabetes", "cnn", "babi_qa2", "snli"])
def test_a_data_set_that_is_not_there_says_what_it_needs(tmp_path, name):
    with pytest.raises(InputError) as error:
        load(tmp_path / "nothing", dataset=name)
    assert CATALOG[name].needs in str(error.value)
    assert "\n" not in str(error.value)


def test_a_data_set_with_words_of_its_own_is_not_split_into_sentences(folder):
    rows = both(range(7, 20))
    source = folder(train=rows, dev=rows, test=rows)
    with refused("--tokenizer sentences", "--dataset"):
        load(source, dataset="sst", tokenizer="sentences")


def test_an_unknown_data_set_is_refused_with_the_known_ones(tmp_path):
    with refused("sst, imdb", "mnist"):
        load(tmp_path, dataset="mnist")


def test_samples_are_seeded_and_counted(folder):
    rows = both(range(7, 60))
    source = folder(train=rows, dev=rows, test=rows)
    one, again = (load(source, dataset="imdb", train_texts=20, test_texts=10) for _ in range(2))
    assert one.fingerprint() == again.fingerprint()
    assert [len(one.splits[name]) for name in ("train", "dev", "test")] == [20, 10, 10]
    assert one.left_out["train: not drawn into the sample"] == 86


@pytest.mark.parametrize(
    ("name", "place", "rules", "split"),
    [
        ("sst", "sst", "code", "train"),
        ("sst", "sst", "code", "test"),
    ],
)
def test_the_real_data_give_the_authors_own_counts(real_data, name, place, rules, split):
    corpus = load(real_data / place, dataset=name, rules=rules)
    counts = tuple(np.bincount(corpus.splits[split].labels).tolist())
    assert counts == PUBLISHED_SIZES[name][split]


def test_the_real_ag_news_differs_from_the_authors_by_the_two_texts_their_filter_drops(real_data):
    split = load(real_data / "ag_news", dataset="ag_news").splits["test"]
    assert np.bincount(split.labels).tolist() == [1900, 1900]
    assert sum(PUBLISHED_SIZES["ag_news"]["test"]) == 3798
