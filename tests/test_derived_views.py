"""Audits of heat maps derived from a layer's weights: which questions are asked, and what is reported."""

import json

import numpy as np
import pytest
from tiny_transformers import tiny_model, tiny_tokenizer
from wording import refused

import heedmap as hm
from heedmap.experiments.methods.adversary_weights import FILE, rows_kept
from heedmap.experiments.questions.adversary import HELD, NOT_ASKED
from heedmap.measures import LN2
from heedmap.report.examples import choose_examples

FEW = {"permutations": 3, "instances": 8}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Audits of a tiny model by view, made when first asked for."""
    root = tmp_path_factory.mktemp("derived")
    rng = np.random.default_rng(0)
    words = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]
    rows = [
        {"text": " ".join(rng.choice(words, n)), "label": int(i % 2)}
        for i, n in enumerate([1, 2, *rng.integers(3, 9, 6)])
    ]
    (root / "films.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    made = {}

    def audit(view, architecture="bert"):
        if (view, architecture) not in made:
            place = root / architecture
            tiny_model(architecture).save_pretrained(place)
            tiny_tokenizer().save_pretrained(place)
            out = root / f"{architecture}-{view}"
            run = hm.open_model(place, root / "films.jsonl", view=view, out=out)
            made[view, architecture] = hm.audit(run, **FEW)
        return made[view, architecture]

    return audit


def finding(audit, key):
    return next(f for f in audit.findings if f.key == key)


def card_of(audit, capsys):
    audit.show()
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


def page_of(audit):
    return (audit.run.folder / "report.html").read_text(encoding="utf-8")


def test_the_adversary_is_not_asked_of_flow_and_card_and_page_say_so(audited, capsys):
    audit = audited("flow")
    table = audit.tables["adversary"]
    for name in ("jsd", "jsd_upper", "tvd", "attention"):
        assert table[name].null_count == table.num_rows == 8
    found = finding(audit, "adversary")
    assert (found.n, found.left_out) == (0, {NOT_ASKED: 8})
    assert (found.reading, found.level) == ("not asked of this view", "for comparison")
    assert NOT_ASKED in card_of(audit, capsys)
    assert NOT_ASKED in page_of(audit)
    assert rows_kept(audit.run.folder / "tables" / FILE) == []
    with refused("row 1"):
        hm.check_adversary(audit.run, 1)
    assert finding(audit, "permutation").n == 7, "what is asked of the weights is asked"


@pytest.mark.exhaustive
def test_a_rollout_that_hardly_follows_the_layer_is_not_said_to_be_pinned_down(audited, capsys):
    audit = audited("rollout")
    table = audit.to_dataframe("adversary")
    assert (table["jsd"] <= table["jsd_upper"] + 1e-9).all()
    found = finding(audit, "adversary")
    assert table["jsd_upper"][1:].mean() < 0.4 * LN2
    assert (found.reading, found.level) == (HELD, "for comparison")
    assert "under any weights of the layer, whatever is predicted" in card_of(audit, capsys)
    assert finding(audited("row"), "adversary").reading != HELD
    free = audit.to_dataframe("smallest_change")[1:]
    assert free["own_maximum"].to_numpy() == pytest.approx(table["jsd_upper"][1:].to_numpy())
    assert free["jsd_share"].mean() > table["jsd"][1:].mean() / LN2, "a share of its own reach"


def test_the_adversarys_heat_map_in_the_table_is_the_view_and_its_jsd_is_theirs(audited):
    for view in ("rollout", "gradient"):
        audit = audited(view)
        table = audit.to_dataframe("adversary")
        for own, other, jsd in zip(
            audit.tables["instances"]["attention"].to_pylist(),
            table["attention"],
            table["jsd"],
            strict=True,
        ):
            p, q = np.array(own, dtype=float), np.array(other, dtype=float)
            m = (p + q) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                parts = [np.where(x > 0, x * np.log(x / m), 0.0).sum() for x in (p, q)]
            assert sum(parts) / 2 == pytest.approx(jsd, abs=1e-5)


@pytest.mark.parametrize("view", ["rollout", "gradient", "effective"])
def test_what_is_shuffled_is_said_to_be_the_layers_weights(audited, view, capsys):
    audit = audited(view)
    card = card_of(audit, capsys)
    assert "Does it matter which position gets which weight in the layer?" in card
    assert "shuffles of the weights of the layer, of which the map is made" in card
    assert "under uniform weights in the layer, at test only" in card
    assert "which word gets which weight" not in card
    page = page_of(audit)
    assert "is the heat map on trial, made from the model's own weights" in page
    titles = {
        example.title for example in choose_examples(audit.tables, audit.classes, derived=True)
    }
    assert not titles & {"Pinned down", "Sharp, but it may point anywhere"}


def test_of_the_weights_themselves_nothing_else_is_said_than_before(audited, capsys):
    audit = audited("row")
    card = card_of(audit, capsys)
    assert "Does it matter which word gets which weight?" in card
    assert "under 3 shuffles of the weights: 0 = no change" in card
    assert "is what the model uses. Adversarial weights are what it could use" in page_of(audit)


@pytest.mark.parametrize(
    ("architecture", "missing"),
    [
        ("bert", {}),
        pytest.param("gpt2", {}, marks=pytest.mark.exhaustive),
        pytest.param("bloom", {"effective": 15}, marks=pytest.mark.exhaustive),
        ("bart", {"rollout": 2, "flow": 2}),
    ],
)
def test_the_views_that_a_model_does_not_give_are_counted_with_the_reason(
    audited, architecture, missing, capsys
):
    audit = audited("row", architecture)
    scanned = set(audit.tables["scan"]["view"].to_pylist())
    assert scanned == {"row", "received", "rollout", "flow", "gradient", "effective"} - set(missing)
    said = audit.about["maps_left_out"]
    assert said.keys() == missing.keys()
    card = card_of(audit, capsys)
    assert ("no maps of" in card) == bool(missing)
    for view, count in missing.items():
        assert said[view].startswith(f"{count} maps: its ")
        assert f"{view}, {count} maps: its " in card
        assert f"{view}, {count} maps: its " in page_of(audit)
        with refused(view):
            audited(view, architecture)
