"""Windows of a text are one instance: tables are pooled by text, and the findings follow."""

import math

import numpy as np
import pyarrow as pa
import pytest
from made_windows import NAMES, tables_of
from scipy import stats

from heedmap.data.corpus import Split
from heedmap.experiments.intervals import of_mean, of_share
from heedmap.experiments.pooling import by_text
from heedmap.experiments.registry import make_findings
from heedmap.settings.audit import AuditSettings


def test_tables_of_whole_texts_are_left_alone():
    tables = tables_of([0, 1, 2])
    tables["instances"] = tables["instances"].drop_columns("text")
    assert by_text(tables) == tables
    assert all(by_text(tables)[name] is table for name, table in tables.items())


@pytest.mark.parametrize(
    "texts", [[0], [0, 0], [0, 1], [0, 0, 0, 1, 2, 2], [0, 1, 1, 2, 3, 3, 3, 3]]
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_number_is_the_one_of_a_slow_loop(texts, seed):
    tables = tables_of(texts, seed)
    found = {name: table.to_pandas() for name, table in by_text(tables).items()}
    raw = {name: table.to_pandas() for name, table in tables.items()}
    texts = np.array(texts)
    total = len(set(texts))
    for name in ("instances", "agreement", "permutation", "integrated_gradients"):
        assert found[name]["row"].tolist() == list(range(total))
    for text in range(total):
        windows = np.flatnonzero(texts == text)
        mean = np.mean([raw["instances"]["probabilities"][i] for i in windows], axis=0)
        one = found["instances"].iloc[text]
        assert one["key"] == f"k{text}"
        assert one["label"] == text % 2
        assert one["probabilities"] == pytest.approx(mean)
        assert one["predicted"] == int(mean[1] > mean[0])
        assert found["agreement"]["predicted"][text] == one["predicted"]
        for column in ("n_tokens", "max_attention", "entropy"):
            assert one[column] == pytest.approx(raw["instances"][column][windows].mean())
        for pair in NAMES:
            taus = [raw["agreement"][f"tau_{pair}"][i] for i in windows]
            ps = [raw["agreement"][f"p_{pair}"][i] for i in windows]
            known = [(t, p) for t, p in zip(taus, ps, strict=True) if not math.isnan(t)]
            tau, p = found["agreement"][f"tau_{pair}"][text], found["agreement"][f"p_{pair}"][text]
            if not known:
                assert math.isnan(tau)
                assert math.isnan(p)
                continue
            assert tau == pytest.approx(np.mean([t for t, _ in known]))
            z = sum(np.sign(t) * stats.norm.isf(p / 2) for t, p in known) / math.sqrt(len(known))
            assert p == pytest.approx(2 * stats.norm.sf(abs(z)))
        long = [i for i in windows if raw["instances"]["n_tokens"][i] > 1]
        tvd = found["permutation"]["median_tvd"][text]
        expected = raw["permutation"]["median_tvd"][long].mean() if long else math.nan
        assert tvd == pytest.approx(expected, nan_ok=True)
        lists = [
            v for i in windows if (v := raw["integrated_gradients"]["importance"][i]) is not None
        ]
        joined = found["integrated_gradients"]["importance"][text]
        assert (joined is None) == (not lists)
        if lists:
            assert list(joined) == list(np.concatenate(lists))
        for layer, head in ((0, 0), (0, 1), (1, 0), (1, 1)):

            def part(frame, layer=layer, head=head):
                return frame[(frame["layer"] == layer) & (frame["head"] == head)]

            mine = part(raw["heads"])
            mine = mine[mine["row"].isin(windows)]
            pooled = part(found["heads"])
            pooled = pooled[pooled["row"] == text].iloc[0]
            assert pooled["row_on_words"] == pytest.approx(mine["row_on_words"].mean())
            longest = mine[mine["positions"] == mine["positions"].max()]
            assert pooled["positions"] == mine["positions"].max()
            assert pooled["rank"] in longest["rank"].to_list()
        for view in ("row", "received"):
            for head in (None, 0):

                def maps(frame, view=view, head=head):
                    same = frame["head"].isna() if head is None else frame["head"] == head
                    return frame[(frame["view"] == view) & same]

                mine = maps(raw["scan"])
                mine = mine[mine["row"].isin(windows)]["tau_leave_one_out"]
                pooled = maps(found["scan"])
                pooled = pooled[pooled["row"] == text]["tau_leave_one_out"]
                assert len(pooled) == (len(mine) > 0)
                if len(mine):
                    assert pooled.iloc[0] == pytest.approx(mine.mean())
    once = by_text(tables)
    assert by_text(once) == once


def test_a_single_window_keeps_its_own_p():
    tables = tables_of([0, 1, 2])
    before, after = tables["agreement"].to_pandas(), by_text(tables)["agreement"].to_pandas()
    for pair in NAMES:
        known = before[f"tau_{pair}"].notna()
        assert after[f"p_{pair}"][known].to_list() == pytest.approx(
            before[f"p_{pair}"][known].to_list()
        )


# --- what follows ----------------------------------------------------------------------------------------


def planted(texts=30, windows=6, seed=0):
    """Windows of a text are alike: their numbers are the text's own, and a little noise."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(texts), windows)
    tables = tables_of(of, seed)
    own = rng.normal(0, 0.3, texts)
    values = np.tanh(own[of] + rng.normal(0, 0.02, len(of)))
    agreement = tables["agreement"].to_pandas()
    for name in NAMES:
        agreement[f"tau_{name}"] = values
    right = rng.random(texts) < 0.7
    p = np.where(right[of], of % 2, 1 - of % 2) * 0.8 + 0.1
    instances = tables["instances"].to_pandas()
    instances["probabilities"] = [[1 - x, x] for x in p]
    instances["predicted"] = (p > 0.5).astype(int)
    return (
        {
            **tables,
            "agreement": pa.Table.from_pandas(agreement, preserve_index=False),
            "instances": pa.Table.from_pandas(instances, preserve_index=False),
        },
        values.reshape(texts, windows),
        right,
    )


def test_n_counts_texts_and_intervals_are_those_of_whole_texts():
    tables, values, right = planted()
    findings = {f.key: f for f in make_findings(tables, AuditSettings(), ["a", "b"])}
    for finding in findings.values():
        assert finding.n + sum(finding.left_out.values()) == 30, finding.key
    skill, gradient = findings["skill"], findings["agreement_gradient"]
    assert skill.n == gradient.n == 30
    assert skill.value == pytest.approx(right.mean())
    assert gradient.value == pytest.approx(values.mean())
    # Whole texts are what is drawn: all windows of one, or none.
    clusters = of_mean(values.mean(1), bounds=(-1.0, 1.0))
    assert (gradient.low, gradient.high) == pytest.approx(clusters)
    as_texts = of_mean(values.ravel(), bounds=(-1.0, 1.0))
    assert gradient.high - gradient.low > 1.5 * (as_texts[1] - as_texts[0])
    low, high = of_share(np.repeat(right, 6).astype(float))
    assert skill.high - skill.low > 1.5 * (high - low)


def test_a_long_text_weighs_no_more_than_a_short_one():
    texts = [0] * 8 + [1] + [2]
    tables = tables_of(texts)
    agreement = tables["agreement"].to_pandas()
    agreement["tau_attention_gradient"] = [1.0] * 8 + [0.0, 0.0]
    tables["agreement"] = pa.Table.from_pandas(agreement, preserve_index=False)
    findings = {f.key: f for f in make_findings(tables, AuditSettings(), ["a", "b"])}
    assert findings["agreement_gradient"].value == pytest.approx(1 / 3)
    assert findings["skill"].value in (0, 1 / 3, 2 / 3, 1)


def test_a_sample_of_texts_holds_all_their_windows():
    of = np.array([0, 0, 1, 3, 3, 3, 4])
    split = Split([f"k{i}" for i in range(7)], [["w"]] * 7, np.zeros(7, np.int64), text_of=of)
    assert split.whole_texts == 4
    for seed in range(10):
        rows = split.drawn(np.random.default_rng(seed), 2)
        assert len(set(of[rows])) == 2
        assert rows.tolist() == np.flatnonzero(np.isin(of, of[rows])).tolist()
    assert split.take([6, 3]).text_of.tolist() == [4, 3]
    plain = Split(split.keys, split.tokens, split.labels)
    rows = plain.drawn(np.random.default_rng(5), 3)
    assert rows.tolist() == sorted(np.random.default_rng(5).permutation(7)[:3])
    assert plain.whole_texts == 7
