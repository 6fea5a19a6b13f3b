"""One text explained: the audit's numbers for it, whatever the text, and how it is shown."""

import csv
import io
import json
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import QUICK, small_corpus, small_pairs
from made_audits import Elements
from rich.console import Console
from tiny_transformers import tiny_classifier, tiny_model, tiny_tokenizer
from wording import refused, stopped

import heedmap as hm
from heedmap.cli.explain import in_utf8
from heedmap.data.babi import Story
from heedmap.data.babi_rows import row_of
from heedmap.data.one_text import one_text
from heedmap.errors import InputError
from heedmap.experiments.rounding import number
from heedmap.report.window_views import sentences
from heedmap.runs.audit_defaults import audited_split
from heedmap.runs.explained import explained
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings
from heedmap.settings.run import RunSettings

SMALL = {"embedding_size": 12, "hidden_size": 16, "min_df": 1}
TEXT = "mark1 w03 w07 w11 w02 w05"
EVIL = "w01 \x1b[31m w02 \u202ew03 <script>alert(1)</script> [red]w04[/red] 🙂"


@pytest.fixture(scope="module")
def pairs_run():
    """A run of pairs, whose audit searches briefly."""
    run = train(small_pairs(candidates=False), encoder="average", epochs=1, **SMALL)
    brief = AuditSettings(epsilon=0.05, search_restarts=1, search_steps=4, descent_steps=0)
    return replace(run, settings=run.settings.model_copy(update={"audit": brief}))


@pytest.fixture(scope="module")
def stars_run():
    """Four classes, and weights of which some are 0."""
    corpus = small_corpus(classes=4)
    return train(corpus, encoder="average", normaliser="sparsemax", epochs=4, **SMALL)


@pytest.fixture
def folder(csv_file, heedmap, tmp_path):
    """A run whose texts are gone."""
    done = heedmap("train", "--data", csv_file, *QUICK, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    csv_file.unlink()
    return tmp_path / "run"


def shown(explanation, width=80):
    file = io.StringIO()
    Console(file=file, width=width).print(explanation)
    return file.getvalue()


def of_transformer(text, long_texts="cut"):
    model = tiny_classifier(long_texts=long_texts)
    settings = RunSettings(
        fingerprint="", data=DataSettings(source="text", raw=True), model=model.settings
    )
    return explained(Path("tiny"), settings, model, text, None)


@pytest.fixture(
    scope="module",
    params=["own", pytest.param("pairs", marks=pytest.mark.exhaustive), "transformer"],
)
def audited(request, tmp_path_factory):
    """A run that is kept, and its audit."""
    place = tmp_path_factory.mktemp("audited")
    rng = np.random.default_rng(0)
    words = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "."]
    rows = [
        {
            "text": " ".join(rng.choice(words, n)),
            "asked": str(rng.choice(words)),
            "label": str(i % 2),
        }
        for i, n in enumerate([1, 2, *rng.integers(3, 9, 58)])
    ]
    (place / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    if request.param == "transformer":
        tiny_model().save_pretrained(place / "tiny")
        tiny_tokenizer().save_pretrained(place / "tiny")
        options = {"classes": ("0", "1"), "out": place / "run"}
        hm.open_model(place / "tiny", place / "texts.jsonl", **options)
    else:
        query = "asked" if request.param == "pairs" else None
        corpus = hm.load(place / "texts.jsonl", query=query)
        train(corpus, encoder="average", epochs=1, **SMALL, out=place / "run")
    audit = hm.audit(hm.open_run(place / "run"), instances=6, permutations=2)
    return SimpleNamespace(folder=place / "run", tables=audit.tables, audit=audit)


@pytest.mark.slow
def test_the_numbers_are_those_of_the_audit_for_the_same_text(audited):
    run = hm.open_run(audited.folder)
    split = audited_split(run.corpus, audited.audit.settings.audit)
    for i, text in enumerate(split.written or ["".join(tokens) for tokens in split.tokens]):
        query = None if split.queries is None else " ".join(split.queries[i])
        made = hm.explain(audited.folder, text, query=query)
        (one,) = made.windows
        row = {
            name: audited.tables[name].slice(i, 1).to_pylist()[0]
            for name in (
                "instances",
                "gradient",
                "leave_one_out",
                "importance_mass",
                "adversary",
                "decision_flips",
            )
        }
        asked = audited.tables["alternatives"].slice(i, 1).to_pylist()[0]
        assert one.tokens == row["instances"]["tokens"]
        close = {"rel": 1e-3, "abs": 1e-5, "nan_ok": True}
        for mine, theirs in (
            (one.probabilities, row["instances"]["probabilities"]),
            (one.attention, row["instances"]["attention"]),
            (one.gradient, row["gradient"]["importance"]),
            (one.leave_one_out, row["leave_one_out"]["importance"]),
            (one.signed, row["leave_one_out"]["signed"]),
            ([one.importance_mass], [row["importance_mass"]["mass_leave_one_out"]]),
            ([one.largest_mass], [row["importance_mass"]["largest_leave_one_out"]]),
            ([one.adversary.jsd_upper], [row["adversary"]["jsd_upper"]]),
        ):
            assert list(mine) == pytest.approx(theirs, **close)
        for name in ("read_out", "read_out_attention"):
            if asked[name] is not None:
                assert getattr(one, name).tolist() == pytest.approx(asked[name], **close)
        # A search of many texts at once may end a little elsewhere.
        least = 1e-6 if one.adversary.exact else 0.01
        assert one.adversary.jsd == pytest.approx(row["adversary"]["jsd"], abs=least)
        counts = row["decision_flips"]
        assert one.flip_along_map == (counts["count_attention"] or 0)
        if one.smallest:
            assert (len(one.flip.words) if one.flip else 0) == counts["count_exact"]
        elif one.flip:
            assert len(one.flip.words) == counts[f"count_{one.flip.ranking}"]


@pytest.mark.slow
def test_a_text_is_explained_as_the_run_was_audited(tmp_path, csv_file):
    small = {"encoder": "average", "embedding_size": 8, "epochs": 1, "min_df": 1}
    asked = {"epsilon": 0.1, "gradient_of": "probability", "instances": 4, "permutations": 2}
    run = hm.train(hm.load(csv_file), out=tmp_path / "run", **small)
    text = " ".join(run.corpus.splits["test"].tokens[0])
    before = run.explain(text)
    after = hm.audit(run, **asked)
    opened = hm.open_run(tmp_path / "run").explain(text)
    assert before.epsilon == 0.01
    for one in (run.explain(text), after.run.explain(text), opened):
        assert one.epsilon == 0.1
        assert one.to_dict() == opened.to_dict()
    in_memory = hm.train(hm.load(csv_file), **small)
    assert hm.audit(in_memory, **asked).run.explain(text).epsilon == 0.1


def test_of_a_run_only_the_model_is_read(folder, heedmap):
    made = hm.explain(folder, "good w01 w02")
    assert made.answer in ("neg", "pos")
    with pytest.raises(InputError):
        hm.open_run(folder)  # it needs the texts
    (folder / "model.safetensors").rename(folder / "elsewhere")
    with refused("heedmap train"):
        hm.explain(folder, "good w01")


def test_the_smallest_set_flips_and_no_smaller_one_does(small_run):
    model = small_run.model
    found = 0
    for text in (
        TEXT,
        "mark0 w30 w21 w12",
        "mark1 mark0 w09 w08 w33",
        "w01 mark0 w01 mark1 mark0",
    ):
        (one,) = small_run.explain(text).windows
        trace = model.trace(model.batch([text.split()], [0]))
        size = len(one.tokens)

        def answer(erased, trace=trace):
            kept = trace.attention.double().clone()
            kept[..., list(erased)] = 0
            weights = (kept / kept.sum()).float().unsqueeze(0)
            return int(model.predict(trace, weights)[0, 0].argmax())

        flipping = [
            len(erased)
            for count in range(1, size)
            for erased in combinations(range(size), count)
            if answer(erased) != int(trace.predicted[0])
        ]
        assert one.smallest
        if one.flip is None:
            assert not flipping
        else:
            found += 1
            assert len(one.flip.words) == min(flipping)
            assert answer(one.flip.words) == one.flip.predicted
            assert one.flip.mass == pytest.approx(one.attention[one.flip.words].sum(), abs=1e-6)
    assert found


def test_without_a_closed_form_the_words_named_do_flip(pairs_run):
    model = pairs_run.model
    flipped = []
    for told in ("ant in den now bee in hut now cat in spa now", "cat in inn now ant in hut now"):
        for thing in ("ant", "bee", "cat"):
            made = pairs_run.explain(told, query=f"where is {thing}")
            (one,) = made.windows
            assert not one.smallest
            if one.flip is None:
                continue
            flipped.append(one.flip)
            split, _ = one_text(pairs_run.settings.data, model.classes, told, f"where is {thing}")
            trace = model.trace(model.batch(split.texts, [0]))
            kept = trace.attention.clone()
            kept[..., one.flip.words] = 0
            logits = model.predict(trace, (kept / kept.sum()).unsqueeze(0))[0, 0]
            assert int(logits.argmax()) == one.flip.predicted != int(trace.predicted[0])
            assert float(logits.softmax(-1).max()) == pytest.approx(one.flip.probability, abs=1e-5)
    assert flipped


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("w01", "there is nothing to leave out"),
        ("w01 w02", "The most attended word holds"),
        (TEXT, "The three most attended words hold"),
        ("zyx qux", "does not know 2 of 2 words"),
        ("w01 w02 " * 40, "40 words that stand out in no column are not listed"),
        (EVIL, "w01"),
    ],
)
def test_any_text_is_shown_in_the_terminal_and_as_html(small_run, text, said):
    made = small_run.explain(text)
    out = shown(made)
    assert said in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert not set(out) & {"\x1b", "\u202e"}
    html = made._repr_html_()
    assert "\x1b" not in html
    found = Elements(html).found
    assert not [tag for tag, _ in found if tag in ("script", "img", "link", "iframe", "style")]
    json.dumps(made.to_dict(), allow_nan=False)
    assert len(made.to_dataframe()) == len(made.tokens)


def test_as_a_string_it_is_what_a_terminal_shows(small_run):
    made = small_run.explain(TEXT)
    assert str(made) == shown(made, 100).rstrip("\n")
    assert repr(made).startswith("<Explanation of ")


def test_a_narrow_terminal_has_every_number_whole(small_run):
    made = small_run.explain(TEXT)
    narrow = " ".join(shown(made, 40).split())
    (one,) = made.windows
    for i, token in enumerate(one.tokens):
        assert f"{i + 1} {token} attention {number(one.attention[i])}" in narrow
    assert max(map(len, shown(made, 40).splitlines())) <= 40


def test_the_reading_counts_what_the_arrays_have(small_run):
    made = small_run.explain(TEXT)
    (one,) = made.windows
    most = np.argsort(-one.attention)[:3].tolist()
    assert one.most_attended() == most
    share = one.leave_one_out / one.leave_one_out.sum()
    said = sentences(one, made.classes, made.unit, made.epsilon)[0]
    numbers = (one.attention[most].sum(), share[most].sum(), 3 / 6, np.sort(share)[-3:].sum())
    for value in numbers:
        assert f"{value:.2f}" in said
    for place in most:
        assert f"[{one.tokens[place]}]" in shown(made)


def test_words_that_are_attended_to_alike_are_not_told_apart(stars_run):
    uniform = train(small_corpus(), encoder="average", score="uniform", epochs=1, **SMALL)
    made = uniform.explain(TEXT)
    assert made.windows[0].most_attended() == []
    assert "No word gets more attention than the others." in shown(made)
    # A sparse normaliser leaves words without weight: none of these is among the most attended.
    (one,) = stars_run.explain("mark2 w01 w02 w03 w04 w05 w06").windows
    assert (one.attention == 0).any()
    assert len(one.probabilities) == 4
    assert all(one.attention[place] > 0 for place in one.most_attended())
    assert not one.adversary.exact
    assert one.adversary.jsd <= one.adversary.jsd_upper + 1e-6


def test_a_prediction_without_doubt_is_not_shown_as_certain(small_run):
    model = small_run.model
    before = model.decoder.weight.clone()
    with torch.no_grad():
        model.decoder.weight *= 1e3
    try:
        made = small_run.explain(TEXT)
    finally:
        with torch.no_grad():
            model.decoder.weight.copy_(before)
    assert made.probabilities.max() > 0.9999
    json.dumps(made.to_dict(), allow_nan=False)
    certain = "1.000" if made.probabilities.max() == 1 else ">0.999"
    assert f"predicted {made.answer} {certain}" in shown(made)


@pytest.mark.parametrize(
    ("run", "text", "query", "named"),
    [
        ("small_run", " \n", None, ["text", "one word"]),
        ("small_run", "caf\udce9", None, ["UTF-8", r"caf\udce9"]),
        ("small_run", "w01", "w02", ["small: ", "no query", "--query"]),
        ("pairs_run", "ant in den", None, ["small-pairs: ", "query", "--query"]),
        ("pairs_run", "ant in den", " ", ["query", "one word"]),
    ],
)
def test_what_cannot_be_read_is_refused(request, run, text, query, named):
    with refused(*named):
        request.getfixturevalue(run).explain(text, query=query)


def test_what_is_no_text_is_refused(small_run):
    for text, named in ((7, ["list of texts", "int"]), (["w01", 7], ["text 1", "int"])):
        with refused(*named, kind=TypeError):
            small_run.explain(text)
    with refused("query", "[(text, query), ...]"):
        small_run.explain(["w01"], query="w02")


def test_many_texts_are_explained_as_each_alone(small_run):
    texts = ["mark1 w03 w07", "w02 w05 w11 w02"]
    many = small_run.explain(texts)
    alone = [small_run.explain(text) for text in texts]
    assert [each.to_dict() for each in many] == [each.to_dict() for each in alone]
    frame = many.to_dataframe()
    assert frame.text.tolist() == [0] * 3 + [1] * 4
    assert frame.answer.unique().tolist() == [*dict.fromkeys(each.answer for each in alone)]
    assert frame.attention.tolist() == [w for each in alone for w in each.attention]
    assert str(many) == "\n\n".join(map(str, alone))


def test_pairs_are_explained_in_one_list(pairs_run):
    pairs = [("ant in den", "ant"), ("bee in hut", "bee")]
    many = pairs_run.explain(pairs)
    assert [each.query for each in many] == [["ant"], ["bee"]]
    with refused("text 0", "(text, query)", "str"):
        pairs_run.explain(["ant in den"])


@pytest.mark.filterwarnings("ignore:.*rows are empty")
def test_a_file_of_texts_is_explained_by_one_command(heedmap, folder, tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text("id,text\na,w01 w02\n=b,w03 =w04 w05\nc,\n")
    done = heedmap("explain", folder, "--data", texts, "--quiet")
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["id"] for row in rows] == ["a"] * 2 + ["'=b"] * len(rows[2:])
    assert {row["token"] for row in rows[2:]} >= {"w03", "w05"}
    assert not any(cell.startswith("=") for row in rows for cell in row.values())
    as_json = heedmap("explain", folder, "--data", texts, "--format", "json", "--quiet")
    first, second = json.loads(as_json.out)
    alone = json.loads(heedmap("explain", folder, "w01 w02", "--json").out)
    assert first == {"id": "a", **alone}
    assert second["id"] == "=b"


def test_a_file_of_texts_is_read_as_a_file_of_texts_to_learn_from(heedmap, folder, tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_bytes('w01 \x84w02\x94|1\n<b>w03</b>|"2\n'.encode("latin-1"))
    options = ["--header", "none", "--separator", "|", "--encoding", "cp1252", "--quotes", "none"]
    columns = ["--markup", "text", "--text-column", "1", "--id-column", "2"]
    done = heedmap("explain", folder, "--data", texts, "--json", "--quiet", *options, *columns)
    assert done.code == 0, done.err
    first, second = json.loads(done.out)
    assert (first["id"], first["text"]) == ("1", "w01 „w02”")
    assert (second["id"], second["text"]) == ('"2', "w03")


@pytest.mark.parametrize("key", ["text", "query"])
def test_a_value_that_is_no_text_is_named_with_its_row(heedmap, folder, tmp_path, key):
    texts, bad = tmp_path / "texts.jsonl", {"text": "w01", "query": "w02", key: {"a": 1}}
    good = {"text": "w01", "query": "w02"}
    texts.write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    done = heedmap("explain", folder, "--data", texts, "--query-column", "query")
    stopped(done, "texts.jsonl, line 2", f"{key} = {{'a': 1}}")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), ["text", "--data"]),
        (("w01", "--header", "none"), ["--header", "--data"]),
        (("--data", "x.csv", "--encoding", "utf-99"), ["encoding = 'utf-99'", "utf-8"]),
        (("w01", "--data", "x.csv"), ["--data", "text"]),
        (("--data", "nowhere.csv"), ["nowhere.csv", ".jsonl"]),
        (("w01", "--text-column", "a"), ["--text-column", "--data"]),
        (("w01", "--json", "--format", "csv"), ["--json", "--format json", "csv"]),
    ],
)
def test_explaining_a_file_the_wrong_way_is_one_line(heedmap, folder, arguments, named):
    done = heedmap("explain", folder, *arguments)
    assert done.out == ""
    stopped(done, *named)


def test_a_folder_that_is_neither_a_run_nor_a_model_is_refused(tmp_path):
    with refused(tmp_path, "settings.toml", "config.json"):
        hm.explain(tmp_path, "w01")


def test_what_was_cut_is_counted(small_run):
    settings = DataSettings(source="x", max_tokens=3, min_tokens=9)
    split, notes = one_text(settings, ["a"], "one two three four")
    assert split.tokens == [["one", "two", "three"]]
    assert ["4 of at least 9 words" in notes[0], "first 3 of 4 words" in notes[1]] == [True, True]


def test_a_transformer_cuts_a_long_text_or_reads_it_in_windows():
    text = "great film " * 40
    cut, read = of_transformer(text), of_transformer(text, "windows")
    assert "cut to its first 30 of 80 words" in cut.notes[0]
    assert len(cut.windows) == 1
    assert "read in 3 windows" in read.notes[0]
    assert [len(one.tokens) for one in read.windows] == [30, 30, 20]
    assert read.windows[0].attention == pytest.approx(cut.windows[0].attention, abs=1e-5)
    mean = np.mean([one.probabilities for one in read.windows], axis=0)
    assert read.probabilities == pytest.approx(mean)
    assert "Window 3 of 3" in shown(read)
    assert "Window 3 of 3" in read._repr_html_()
    assert read.to_dataframe()["window"].tolist() == [0] * 30 + [1] * 30 + [2] * 20


def test_a_model_alone_says_once_that_it_cuts(tmp_path):
    tiny_model().save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    (note,) = hm.explain(tmp_path, "great film " * 300).notes
    assert "cut to its first 30 of 600 words" in note


def test_words_that_the_tokenizer_does_not_know_are_named():
    made = of_transformer("great zebra film 🙂")
    (one,) = made.windows
    assert one.tokens == ["great", "zebra", "film", "🙂"]
    assert one.unknown.tolist() == [False, True, False, True]
    assert "does not know 2 of 4 words: zebra, 🙂" in made.notes[0]


def test_a_story_has_the_tokens_that_it_has_in_the_data_set():
    told = [["mary", "went", "to", "the", "den", "."], ["john", "sat", "."]]
    row = row_of(Story(told, ["where", "is", "mary", "?"], "den", (0,)), "key")
    for settings in (
        {"source": "babi_qa1"},
        {"source": "stories", "dataset": "babi_qa1"},
    ):
        split, _ = one_text(
            DataSettings(**settings), ["den"], "Mary went to the den. John sat.", "Where is Mary?"
        )
        assert split.tokens == [row.tokens]
        assert split.queries == [row.query]


def test_the_answers_of_a_cloze_question_are_the_texts_entities():
    settings = DataSettings(source="cnn", dataset="cnn")
    classes = ["@entity1", "@entity2", "@entity3"]
    split, _ = one_text(settings, classes, "@entity3 met @entity1 .", "who met @placeholder")
    assert split.allowed.tolist() == [[True, False, True]]
    with refused("answer", "@entity1, @entity2, @entity3"):
        one_text(settings, classes, "nobody", "who met @placeholder")


@pytest.mark.slow
def test_the_command_prints_a_table_or_json_and_the_picture_is_a_page(
    folder, heedmap, tmp_path, monkeypatch
):
    done = heedmap("explain", folder, "good w01 w02 zyx")
    assert done.code == 0, done.err
    for said in ("predicted", "leave-one-out", "other weights", "zyx?", "1 of 4 words"):
        assert said in done.out
    made = json.loads(heedmap("explain", folder, "good w01 w02", "--json").out)
    (window,) = made["windows"]
    assert window["tokens"] == ["good", "w01", "w02"]
    assert sum(window["attention"]) == pytest.approx(1, abs=1e-5)
    assert made["probabilities"] == window["probabilities"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"good w01 w02")))
    assert json.loads(heedmap("explain", folder, "-", "--json").out)["windows"] == [window]
    page = tmp_path / "page.html"
    assert heedmap("picture", folder, "--text", "good w01 <b>", "--out", page).code == 0
    assert "One text explained" in page.read_text("utf-8")
    wrong = heedmap("picture", folder, "--text", "good", "--layer", 0)
    stopped(wrong, "--layer")
    assert heedmap("explain", folder, "").code == 2


def test_an_argument_is_utf_8_whatever_the_locale_says():
    assert in_utf8("g\udcc3\udcb6d") == in_utf8("göd") == "göd"
    assert in_utf8("g\udcff") == "g\udcff"
