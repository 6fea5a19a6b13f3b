"""One text under other attention: what the picture shows, on tiny models of several architectures."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_audits import Elements
from tiny_transformers import CONFIGS, tiny_classifier
from wording import refused, stopped

from heedmap.report import pictures, shown_interventions
from heedmap.report.pictures import draw, page
from heedmap.settings.audit import AuditSettings

TEXT = "A great film, the plot is unwatchable <script>alert(1)</script>."
NAMES = [
    "own",
    "uniform",
    "shuffled keys",
    "entmax15",
    "sparsemax",
    "random keys",
    "adversarial search",
]


@pytest.fixture(scope="module", autouse=True)
def short_search():
    """Where the search goes is tested elsewhere; here it may be quick."""
    quick = AuditSettings(search_steps=4, search_restarts=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shown_interventions, "AuditSettings", lambda: quick)
        yield


@pytest.fixture(scope="module")
def picture(short_search):
    return draw(tiny_classifier(), TEXT)


@pytest.mark.parametrize("architecture", list(CONFIGS))
def test_every_architecture_is_drawn(architecture):
    model = tiny_classifier(architecture)
    drawn = draw(model, "A great film, the plot is bad.")
    names = [column.name for column in drawn.columns]
    if model.adapter.kind == "interface":
        assert names == NAMES
    else:
        assert "random keys" not in names
        assert any("random keys" in note for note in drawn.notes)
    assert [layer.number for layer in drawn.layers] == list(range(len(model.calls)))
    assert [layer.is_on_trial for layer in drawn.layers].index(True) == model.layer
    for layer in drawn.layers:
        assert len(layer.rows) == model.heads + 1
        for _, cells in layer.rows:
            for cell in cells:
                whole = sum(t.weight for t in cell.words) + sum(w for _, w in cell.special)
                assert whole == pytest.approx(1, abs=1e-4)
                assert len(cell.words) == 9
    html = page(drawn)
    assert "<script" not in html


def test_the_first_column_is_the_model_itself(picture):
    model = tiny_classifier()
    batch = model.batch([["A", " great", " film"]], [0])
    drawn = draw(model, "A great film")
    own = drawn.columns[0]
    expected = model.logits(batch)[0].softmax(-1)
    assert own.probability == pytest.approx(float(expected.max()), abs=1e-5)
    assert own.tvd == 0
    weights = model.trace(batch).attention[0]  # the read row of every head
    _, cells = drawn.layers[-1].rows[2]
    assert [t.weight for t in cells[0].words] == pytest.approx(weights[2, 1:4].tolist(), abs=1e-5)
    assert dict(cells[0].special) == {
        "[CLS]": pytest.approx(float(weights[2, 0]), abs=1e-5),
        "[SEP]": pytest.approx(float(weights[2, 4]), abs=1e-5),
    }


def test_uniform_is_uniform_and_means_are_means():
    drawn = draw(tiny_classifier(), "A great film")
    for layer in drawn.layers:
        for _, cells in layer.rows:
            assert [t.weight for t in cells[1].words] == pytest.approx([0.2] * 3, abs=1e-6)
        by_head = [[t.weight for t in cells[0].words] for _, cells in layer.rows[:-1]]
        name, cells = layer.rows[-1]
        assert name == "mean"
        assert [t.weight for t in cells[0].words] == pytest.approx(np.mean(by_head, 0).tolist())


def test_shades_are_shares_of_the_models_own_largest(picture):
    for layer in picture.layers:
        for _, cells in layer.rows:
            top = max(t.weight for t in cells[0].words)
            for cell in cells:
                for token in cell.words:
                    assert token.shade == pytest.approx(min(token.weight / top, 1))


def test_the_adversary_keeps_the_prediction(picture):
    found = picture.columns[-1]
    assert found.name == "adversarial search"
    assert found.tvd <= 0.01 + 1e-4
    assert not found.flipped


def test_the_adversary_changes_one_layer_and_what_is_above():
    drawn = draw(tiny_classifier(layer=1), "A great film, the plot is bad.")
    same = [
        all(
            [t.weight for t in cells[-1].words] == pytest.approx([t.weight for t in cells[0].words])
            for _, cells in layer.rows
        )
        for layer in drawn.layers
    ]
    assert same[:2] == [True, False]


def test_the_same_seed_gives_the_same_picture():
    assert draw(tiny_classifier(), TEXT, 3) == draw(tiny_classifier(), TEXT, 3)
    assert draw(tiny_classifier(), TEXT, 3) != draw(tiny_classifier(), TEXT, 4)


def test_no_global_random_state_is_read():
    before = torch.random.get_rng_state()
    first = draw(tiny_classifier(), "A great film")
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(99)
    assert draw(tiny_classifier(), "A great film") == first
    torch.random.set_rng_state(before)


def test_text_stays_text_and_nothing_is_fetched(picture):
    evil = replace(picture, model="</title><script>x</script>", notes=["<b>\x1b[31m"])
    html = page(evil)
    assert "\x1b" not in html
    assert "&lt;script&gt;alert(1)" in html
    found = Elements(html).found
    assert not [tag for tag, _ in found if tag in ("script", "img", "link", "iframe")]
    assert not [name for _, a in found for name in a if name.startswith("on") or name == "src"]
    policies = [a["content"] for _, a in found if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies[0].startswith("default-src 'none'; script-src 'none';")
    assert [a for tag, a in found if tag == "details" and "open" in a]


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_a_text_without_words_is_refused(text):
    with refused("one word"):
        draw(tiny_classifier(), text)


def test_one_word_is_drawn():
    drawn = draw(tiny_classifier(), "bad")
    assert [column.name for column in drawn.columns] == NAMES
    for layer in drawn.layers:
        for _, cells in layer.rows:
            for cell in cells:
                (word,) = cell.words
                special = dict(cell.special)
                assert special.keys() == {"[CLS]", "[SEP]"}
                assert word.weight + sum(special.values()) == pytest.approx(1, abs=1e-5)
            # The model's own word is the darkest; of even weights it has its third.
            assert cells[0].words[0].shade == 1
            assert cells[1].words[0].weight == pytest.approx(1 / 3, abs=1e-6)
    # A heat map of a single word is all that word: no other stands beside it.
    assert drawn.columns[-1].tvd == 0
    assert "JSD 0.00 from the model" in drawn.columns[-1].note
    assert page(drawn).count(">bad<") >= len(drawn.layers) * len(drawn.columns)


def test_a_long_text_is_cut_and_the_page_says_so():
    drawn = draw(tiny_classifier(), "great film " * 100)
    assert len(drawn.layers[0].rows[0][1][0].words) == 30  # and [CLS], [SEP]
    assert "cut to its first 30 of 200 words" in drawn.notes[0]
    assert "cut to its first 30 of 200 words" in page(drawn)


def test_of_a_large_picture_only_the_layer_on_trial_is_drawn(monkeypatch):
    monkeypatch.setattr(pictures, "MOST", 10)
    drawn = draw(tiny_classifier(layer=1), "A great film")
    assert [layer.number for layer in drawn.layers] == [1]
    assert "layer 1 is drawn" in drawn.notes[-1]


def test_the_command_refuses_what_it_cannot_draw(heedmap, tmp_path):
    for arguments, named in (
        (("--text", " "), "one word"),
        ((), "one word"),
        (("good", "--text", "bad"), "two"),
        (("-5 stars",), "put --"),
        (("--text", "good"), "nothing"),  # no such model
        (("good",), "nothing"),
    ):
        found = heedmap("picture", tmp_path / "nothing", *arguments)
        assert found.err.startswith("heedmap: ")
        assert len(found.err.splitlines()) == 1
        stopped(found, named)


def test_the_command_writes_the_page(heedmap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = tiny_classifier()
    model.model.save_pretrained(tmp_path / "tiny")
    model.tokenizer.save_pretrained(tmp_path / "tiny")
    found = heedmap("picture", tmp_path / "tiny", "--text", "A great film/../..", "--layer", 0)
    assert found.code == 0, found.err
    path = re.search(r"Picture: (\S+)", found.out)[1]
    assert re.fullmatch(r"runs/pictures/tiny-a-great-film-[0-9a-f]{6}\.html", path)
    html = (tmp_path / path).read_text("utf-8")
    assert re.search(r"<details open>\s*<summary><h2>Layer 0", html)
    assert heedmap("picture", tmp_path / "tiny", "--text", "A", "--layer", 7).code == 2


@pytest.mark.slow
def test_a_classifier_from_a_folder_is_drawn(classifier):
    from heedmap.huggingface.opening import open_classifier
    from heedmap.settings.models import TransformerSettings

    model, _ = open_classifier(TransformerSettings.of(source=str(classifier)))
    drawn = draw(model, "The acting is wonderful, but the unbelievable plot is not.")
    own, uniform = drawn.columns[:2]
    assert own.tvd == 0
    assert 0 < uniform.tvd < 1
    assert drawn.columns[-1].tvd <= 0.0101
    config = model.model.config
    assert len(drawn.layers) == config.num_hidden_layers
    assert len(drawn.layers[0].rows) == config.num_attention_heads + 1
    assert "[CLS]" in page(drawn)
