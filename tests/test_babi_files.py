from dataclasses import replace

import numpy as np
import pytest
from babi_solvers import ours, tasks
from wording import refused

from heedmap.data.babi import Story
from heedmap.data.babi_rows import read_official, read_stories, row_of, story_of

TEXT = """\
1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went back to the hallway.
5 Where is Daniel? \thallway\t4
1 Sandra got the milk there.
2 Sandra moved to the garden.
3 Where is the milk?\tgarden\t1 2
"""


@pytest.fixture
def official(tmp_path):
    for split in ("train", "test"):
        (tmp_path / f"qa2_two-supporting-facts_{split}.txt").write_text(TEXT)
    (tmp_path / "qa20_agents-motivations_train.txt").write_text("not this one")
    return tmp_path


def test_a_question_has_the_sentences_of_its_world_before_it(official):
    splits = read_official(official, 2)
    assert list(splits) == ["train", "test"]
    first, second, third = splits["train"]
    mary = ["mary", "moved", "to", "the", "bathroom", "."]
    john = ["john", "went", "to", "the", "hallway", "."]
    daniel = ["daniel", "went", "back", "to", "the", "hallway", "."]
    assert first == Story([mary, john], ["where", "is", "mary", "?"], "bathroom", (0,))
    assert second == Story([mary, john, daniel], ["where", "is", "daniel", "?"], "hallway", (2,))
    assert third.sentences[0] == ["sandra", "got", "the", "milk", "there", "."]
    assert (third.answer, third.supporting) == ("garden", (0, 1))


def test_a_story_survives_the_official_layout(tmp_path):
    path = tmp_path / "qa3_train.txt"
    told = ours(3)[:10]
    lines = []
    for story in told:
        lines += [f"{n} {' '.join(s)}" for n, s in enumerate(story.sentences, 1)]
        supporting = " ".join(str(index + 1) for index in story.supporting)
        question = " ".join(story.question)
        lines.append(f"{len(story.sentences) + 1} {question}\t{story.answer}\t{supporting}")
    path.write_text("\n".join(lines) + "\n")
    assert read_stories(path) == told


def test_a_task_without_a_file_is_named(official):
    with refused("qa3_*train.txt", "none"):
        read_official(official, 3)


def test_two_files_for_one_split_are_named(official):
    (official / "qa2_again_train.txt").write_text(TEXT)
    with refused("qa2_*train.txt", "qa2_again_train.txt and qa2_two-supporting-facts_train.txt"):
        read_official(official, 2)


@pytest.mark.parametrize(
    ("line", "text", "named"),
    [
        (2, "1 Mary moved.\nJohn went.\n", ["a number", "'John went.'"]),
        (2, "1 Mary moved.\n3 John went.\n", ["expected 1", "got 3"]),
        (1, "7 Mary moved.\n", ["expected 1", "got 7"]),
        (2, "1 Mary moved.\n2 Where is Mary?\tbathroom\n", ["tab", r"'Where is Mary?\tbathroom'"]),
        (2, "1 Mary moved.\n2 Where is Mary?\t\t1\n", ["tab", r"'Where is Mary?\t\t1'"]),
        (2, "1 Mary moved.\n2 Where is Mary?\tbathroom\t3\n", ["above the question", "'3'"]),
        (2, "1 Mary moved.\n2 Where is Mary?\tbathroom\tone\n", ["above the question", "'one'"]),
        (
            2,
            "1 Mary moved.\n2 Where is Mary?  bathroom 1\n",
            ["tab", "'Where is Mary?  bathroom 1'"],
        ),
        (2, "1 Mary moved.\n2 Where is Mary?\n", ["tab", "'Where is Mary?'"]),
        (3, "1 A b.\n2 Where?\tb\t1\n3 Where?\tb\t2\n", ["above the question", "'2'"]),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path, line, text, named):
    path = tmp_path / "qa1_train.txt"
    path.write_text(text)
    with refused(f"qa1_train.txt, line {line}", *named):
        read_stories(path)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "no question"),
        (b"1 Mary moved.\n", "no question"),
        (b"1 M\xe4ry\n", "UTF-8"),
    ],
)
def test_a_file_without_a_question_or_in_another_encoding_is_named(tmp_path, content, named):
    path = tmp_path / "qa1_train.txt"
    path.write_bytes(content)
    with refused("qa1_train.txt", named):
        read_stories(path)


ROW = {
    "id": "babi2-train-s0-l3",
    "story": ["Sandra got the milk there .", "Sandra moved to the garden ."],
    "question": "Where is the milk ?",
    "answer": "garden",
    "supporting": [0, 1],
}


def test_a_json_row_is_the_story_of_the_official_text(official):
    assert story_of(ROW) == read_official(official, 2)["test"][2]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"story": "Sandra got the milk ."}, ["story", "'Sandra got the milk .'"]),
        ({"story": []}, ["story", "'[]'"]),
        ({"story": ["Mary moved .", " "]}, ["story", "['Mary moved .', ' ']"]),
        ({"question": None}, ["question", "'None'"]),
        ({"answer": ""}, ["answer", "''"]),
        (
            {"supporting": [2]},
            ["supporting", "0 to 1", "'[2]'"],
        ),
        ({"supporting": [-1]}, ["supporting", "0 to 1", "'[-1]'"]),
        ({"supporting": [True]}, ["supporting", "0 to 1", "'[True]'"]),
        ({"supporting": []}, ["supporting", "0 to 1", "'[]'"]),
    ],
)
def test_a_json_row_that_is_no_story_is_refused(change, named):
    with refused(*named):
        story_of(ROW | change)


def test_a_json_row_without_a_field_says_what_it_has():
    row = {name: value for name, value in ROW.items() if name != "answer"}
    with refused("'answer'", "id, story, question, supporting"):
        story_of(row)


# Stories as rows of a corpus.


def test_a_row_has_a_full_stop_between_sentences_and_none_at_the_end():
    row = row_of(story_of(ROW), "k")
    assert " ".join(row.tokens) == "sandra got the milk there . sandra moved to the garden"
    assert row.query == ["where", "is", "the", "milk"]
    assert (row.key, row.label, row.candidates) == ("k", "garden", None)


def test_the_rationale_is_the_words_of_the_supporting_sentences():
    story = replace(story_of(ROW), supporting=(1,))
    row = row_of(story, "k")
    assert row.rationale.dtype == np.bool_
    marked = [token for token, is_in in zip(row.tokens, row.rationale, strict=True) if is_in]
    assert marked == ["sandra", "moved", "to", "the", "garden"]


@tasks
def test_a_row_marks_as_many_tokens_as_its_supporting_sentences_have(task):
    for story in ours(task)[:50]:
        row = row_of(story, "k")
        assert len(row.tokens) == sum(map(len, story.sentences)) - 1
        assert row.rationale.sum() == sum(len(story.sentences[i]) - 1 for i in story.supporting)


def test_sentences_without_a_mark_make_the_same_row():
    story = story_of(ROW)
    bare = replace(story, sentences=[s[:-1] for s in story.sentences], question=story.question[:-1])
    one, other = row_of(story, "k"), row_of(bare, "k")
    assert (one.tokens, one.query) == (other.tokens, other.query)
    assert (one.rationale == other.rationale).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sentences": []}, ["k: ", "words", "question", "sentence"]),
        ({"sentences": [["a"], ["."]]}, ["k: ", "words", "question", "sentence"]),
        ({"question": ["?"]}, ["k: ", "words", "question", "sentence"]),
        ({"supporting": (0, 2)}, ["k: ", "0 to 1", "0, 2"]),
    ],
)
def test_a_story_that_makes_no_row_is_refused(change, named):
    with refused(*named):
        row_of(replace(story_of(ROW), **change), "k")
