import pytest
from wording import refused

from heedmap.data.cloze import read

ARTICLE = "( @entity1 ) The @entity10 of @entity2 met @entity1 's Envoy ."


def question(article=ARTICLE, query="Who met @placeholder ?", answer="@entity2", names=None):
    names = ["@entity1:CNN", "@entity10:King", "@entity2:Spain"] if names is None else names
    return "\n\n".join(["http://web/a.html", article, query, answer, "\n".join(names)]) + "\n"


def write(folder, names=("training", "validation", "test"), texts=None, **kwargs):
    texts = [question()] if texts is None else texts
    for name in names:
        (folder / name).mkdir(parents=True)
        for i, text in enumerate(texts):
            (folder / name / f"q{i}.question").write_text(text, encoding="utf-8", **kwargs)
    return folder


def test_a_question_becomes_a_row_with_its_query_and_candidates(tmp_path):
    write(tmp_path / "questions")
    rows, left_out = read(tmp_path)
    assert list(rows) == ["train", "dev", "test"]
    assert left_out == {}
    (row,) = rows["train"]
    assert row.key == "q0"
    assert row.tokens == ARTICLE.lower().split(" ")
    assert row.query == ["who", "met", "@placeholder", "?"]
    assert row.label == "@entity2"
    assert row.candidates == ("@entity1", "@entity10", "@entity2")
    assert row.rationale is None


@pytest.mark.parametrize("names", [("training", "validation", "test"), ("train", "dev", "test")])
@pytest.mark.parametrize("above", ["", "questions"])
def test_the_splits_folders_may_stand_alone_or_under_questions(tmp_path, names, above):
    write(tmp_path / above, names)
    assert {split: len(rows) for split, rows in read(tmp_path)[0].items()} == {
        "train": 1,
        "dev": 1,
        "test": 1,
    }


def test_rows_stand_in_the_order_of_their_files_names(tmp_path):
    write(tmp_path, texts=[question(answer=answer) for answer in ("@entity2", "@entity1")])
    rows, _ = read(tmp_path)
    assert [(row.key, row.label) for row in rows["dev"]] == [("q0", "@entity2"), ("q1", "@entity1")]


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    rows, _ = read(write(tmp_path / "unix"))
    windows, _ = read(write(tmp_path / "windows", texts=["\ufeff" + question()], newline="\r\n"))
    assert windows == rows


def test_a_separator_inside_an_article_is_white_space(tmp_path):
    rows, _ = read(write(tmp_path, texts=[question("@entity2 said\u2028this\x85here")]))
    assert rows["test"][0].tokens == ["@entity2", "said", "this", "here"]


def test_an_entity_without_a_name_is_a_candidate_all_the_same(tmp_path):
    rows, _ = read(write(tmp_path, texts=[question(names=["@entity1:CNN"])]))
    assert rows["train"][0].candidates == ("@entity1", "@entity10", "@entity2")


def test_an_entity_of_the_names_that_the_article_lacks_is_no_candidate(tmp_path):
    rows, _ = read(write(tmp_path, texts=[question("only @entity2")]))
    assert rows["train"][0].candidates == ("@entity2",)


def test_what_is_left_out_is_counted_with_its_reason(tmp_path):
    write(tmp_path, texts=[question(), question(article="")])
    (tmp_path / "training" / "README").write_text("hello")
    (tmp_path / "training" / "._q0.question").write_bytes(b"\xff\x00")
    rows, left_out = read(tmp_path)
    assert len(rows["train"]) == 1
    assert left_out == {
        "train: empty article": 1,
        "train: not a .question file": 2,
        "dev: empty article": 1,
        "test: empty article": 1,
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (question(answer="@entity7"), ["(@entity1, @entity10, @entity2)", "'@entity7'"]),
        (question(article="no entity"), ["(none)", "'@entity2'"]),
        (question(answer="@entity"), ["(@entity1, @entity10, @entity2)", "'@entity'"]),
        (question(query="who met him ?"), ["@placeholder", "'who met him ?'"]),
        (question(query=""), ["@placeholder", "''"]),
        (question(names=[]), ["address"]),
        (question(article="two\nlines"), ["address"]),
        ("", ["address"]),
        ("just a text", ["address"]),
    ],
)
def test_a_broken_file_is_refused_by_its_name_in_one_line(tmp_path, text, named):
    write(tmp_path)
    (tmp_path / "training" / "bad.question").write_text(text)
    with refused("training/bad.question", *named):
        read(tmp_path)


def test_a_file_that_is_not_utf8_is_refused_by_its_name(tmp_path):
    write(tmp_path)
    (tmp_path / "test" / "bad.question").write_bytes(question().encode() + b"\xff")
    with refused("test/bad.question", "UTF-8"):
        read(tmp_path)


def test_a_missing_folder_says_what_to_download_and_how_it_is_laid_out(tmp_path):
    with refused(tmp_path / "none", "DeepMind Q&A", "questions/training"):
        read(tmp_path / "none")


def test_a_missing_split_is_named(tmp_path):
    with refused(tmp_path, "train or dev or test", "nothing"):
        read(tmp_path)
    write(tmp_path, ("training", "test"))
    with refused("dev", "test, training", "questions/validation"):
        read(tmp_path)


def test_an_empty_split_is_refused(tmp_path):
    write(tmp_path, ("training", "test"))
    (tmp_path / "validation").mkdir()
    with refused(tmp_path / "validation", "no questions"):
        read(tmp_path)


def test_two_folders_for_one_split_are_refused(tmp_path):
    write(tmp_path, ("training", "train", "validation", "test"))
    with refused("train and training", "train"):
        read(tmp_path)
