"""Runs side by side: which texts are the same, which differences are certain, what differs, the page."""

import json
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made_audits import Elements, make_audit
from scipy import stats
from wording import refused, stopped

import heedmap as hm
from heedmap.comparisons.compare import compare
from heedmap.comparisons.differences import RunNumbers, compared_pairs, differences
from heedmap.comparisons.map_differences import (
    IN_WINDOWS,
    ONE_TOKEN,
    OTHER_TOKENS,
    UNDEFINED,
    map_differences,
    maps_of,
    weight_distance,
)
from heedmap.comparisons.same_texts import TextIds, text_ids
from heedmap.comparisons.seed_rows import letter, seed_rows
from heedmap.comparisons.shown_texts import EXTREMES, shown_texts
from heedmap.comparisons.sources import NamedAudit
from heedmap.experiments import intervals
from heedmap.experiments.results import TextNumbers
from heedmap.settings.run import RunSettings

TAIL = intervals.TAIL
SLOW = pytest.mark.slow


# --- which texts are the same -------------------------------------------------------------------------------


def instances(texts, keys=None, queries=None):
    """A table `instances` of some texts, each a string of tokens."""
    tokens = [text.split() for text in texts]
    columns = {
        "key": keys or [f"line {i}" for i in range(len(texts))],
        "tokens": tokens,
        "label": [0] * len(texts),
        "predicted": [0] * len(texts),
        "probabilities": [[0.75, 0.25]] * len(texts),
        "attention": [[1.0 / len(words)] * len(words) for words in tokens],
    }
    if queries is not None:
        columns["query"] = [query.split() for query in queries]
    return pa.table(columns)


def test_a_text_is_the_same_whatever_its_place_its_case_and_its_tokens():
    one, other = text_ids(
        [instances(["a good film", "isn't it"]), instances(["Is n't it", "new", "A good film"])]
    )
    assert one.ids.tolist() == [other.ids[2], other.ids[0]]
    assert other.ids[1] not in one.ids


def test_texts_of_other_letters_are_different_even_under_one_key():
    one, other = text_ids([instances(["good film"], ["7"]), instances(["bad film"], ["7"])])
    assert not {*one.ids} & {*other.ids}


def test_a_text_that_a_model_cuts_is_the_same_where_its_key_and_its_beginning_are():
    long = "word " * 30
    cut = "word " * 12
    whole, part = text_ids([instances([long], ["7"]), instances([cut], ["7"])])
    assert whole.ids.tolist() == part.ids.tolist()
    whole, part = text_ids([instances([long], ["7"]), instances([cut], ["8"])])
    assert not {*whole.ids} & {*part.ids}, "another key: another text"
    whole, part = text_ids([instances(["a film of note"], ["7"]), instances(["a film"], ["7"])])
    assert not {*whole.ids} & {*part.ids}, "too short to tell a cut from another text"


def test_a_repeated_text_is_matched_occurrence_by_occurrence():
    one, other = text_ids([instances(["a b", "a b", "c"]), instances(["c", "a b"])])
    assert one.ids.tolist() == [other.ids[1], one.ids[1], other.ids[0]]
    assert one.ids[1] not in other.ids
    assert one.texts[0] == one.texts[1] == other.texts[1]


def test_a_pair_is_the_same_only_with_the_same_query():
    one, other = text_ids(
        [instances(["a b"], queries=["is it"]), instances(["a b"], queries=["was it"])]
    )
    assert not {*one.ids} & {*other.ids}


# --- differences --------------------------------------------------------------------------------------------


def numbered(values, ids=None, texts=None, **options):
    """A run's numbers; its texts are 0, 1, ... unless others are named."""
    ids = np.arange(len(values)) if ids is None else np.asarray(ids)
    return RunNumbers(
        TextNumbers(np.asarray(values, float), **options),
        TextIds(ids, ids if texts is None else np.asarray(texts)),
    )


def difference(first, second):
    """The one difference between two rows, each a list of runs."""
    (only,) = differences({"q": [first, second]}, [(0, 1)])
    return only


def slow_pairs(first, second):
    """Both runs' values of each text that both have, one text after the other."""
    pairs = []
    for i, value in zip(first.texts.ids, first.numbers.values, strict=True):
        for j, other in zip(second.texts.ids, second.numbers.values, strict=True):
            if i == j and math.isfinite(value) and math.isfinite(other):
                pairs.append((i, value, other))
    return sorted(pairs)


def slow_bootstrap(changes):
    """The studentised bootstrap of a mean, one resample after the other."""
    n, mean = len(changes), float(np.mean(changes))
    error = np.std(changes, ddof=1) / math.sqrt(n)
    rows = np.random.default_rng([0, n]).integers(0, n, (intervals.RESAMPLES, n))
    t = []
    for row in rows:
        drawn = changes[row]
        spread = math.sqrt(((drawn - drawn.mean()) ** 2).sum() / n / (n - 1))
        shift = drawn.mean() - mean
        far = math.copysign(math.inf, shift) if shift else 0.0
        t.append(shift / spread if spread > 1e-9 * error else far)
    low, high = np.quantile(t, [TAIL, 1 - TAIL], method="inverted_cdf")
    return mean - high * error, mean - low * error


@pytest.mark.parametrize("n", [6, 17, 40])
def test_a_paired_difference_is_that_of_the_texts_that_both_have(n):
    rng = np.random.default_rng(n)
    first = numbered(np.where(rng.random(n) < 0.1, np.nan, rng.random(n)), rng.permutation(n))
    shared = rng.permutation(n + 3)[:n]
    second = numbered(rng.random(n), shared)
    pairs = slow_pairs(first, second)
    changes = np.array([value - other for _, value, other in pairs])
    got = difference([first], [second])
    assert (got.n, got.paired) == (len(pairs), True)
    assert got.value == pytest.approx(changes.mean())
    assert (got.low, got.high) == pytest.approx(slow_bootstrap(changes), rel=1e-6)
    # One comparison needs no correction.
    assert (got.strict_low, got.strict_high) == pytest.approx((got.low, got.high))


def test_a_difference_is_turned_round_with_its_rows():
    rng = np.random.default_rng(1)
    first, second = numbered(rng.random(30)), numbered(rng.random(30))
    there, back = difference([first], [second]), difference([second], [first])
    assert (back.value, back.paired) == (pytest.approx(-there.value), True)
    assert there.low < there.value < there.high
    assert back.low == pytest.approx(-there.high, abs=0.02)


@pytest.mark.parametrize("common", [0, 1, 4])
def test_of_few_texts_in_common_the_interval_is_that_of_independent_samples(common):
    rng = np.random.default_rng(common)
    values, others = rng.random(30), rng.random(20)
    first = numbered(values)
    second = numbered(others, np.arange(20) + 30 - common)
    got = difference([first], [second])
    assert (got.paired, got.n) == (False, 20)
    assert got.value == pytest.approx(values.mean() - others.mean())
    ends = [intervals.of_mean(x, bounds=(0.0, 1.0)) for x in (values, others)]
    below = math.hypot(values.mean() - ends[0][0], ends[1][1] - others.mean())
    above = math.hypot(ends[0][1] - values.mean(), others.mean() - ends[1][0])
    assert (got.low, got.high) == pytest.approx((got.value - below, got.value + above))


def test_pairing_makes_a_difference_certain_that_independent_samples_leave_open():
    rng = np.random.default_rng(0)
    hard = rng.random(60)
    first, second = 0.8 * hard + 0.05 * rng.random(60) + 0.04, 0.8 * hard + 0.05 * rng.random(60)
    assert difference([numbered(first)], [numbered(second)]).certain
    apart = difference([numbered(first)], [numbered(second, np.arange(60) + 100)])
    assert not apart.certain
    assert apart.value == pytest.approx(float(first.mean() - second.mean()))


def test_of_fewer_texts_than_an_interval_needs_there_is_none_and_nothing_is_certain():
    got = difference([numbered([0.0, 0.1])], [numbered([0.9, 1.0])])
    assert math.isnan(got.low)
    assert math.isnan(got.strict_low)
    assert "fewer than 5" in got.no_interval
    assert not got.certain


def test_a_row_without_a_number_is_not_compared():
    nothing = numbered([np.nan] * 8)
    assert math.isnan(nothing.value)
    assert differences({"q": [None, [numbered(np.arange(8.0))]]}, [(0, 1)]) == []


def test_of_medians_it_is_the_median_of_the_differences():
    rng = np.random.default_rng(3)
    values, others = rng.random(25), rng.random(25)
    got = difference([numbered(values, statistic="median")], [numbered(others, statistic="median")])
    ordered = sorted(values - others)
    assert got.value == ordered[12]
    rank = int(stats.binom.ppf(TAIL, 25, 0.5))
    assert (got.low, got.high) == (ordered[rank - 1], ordered[-rank])


def test_of_ratios_it_is_the_difference_of_the_ratios_with_an_error_as_of_leaving_out_each_text():
    rng = np.random.default_rng(4)
    n = 60
    ratios = []
    for _ in range(2):
        below = rng.uniform(0.2, 0.8, n)
        ratios.append((below * rng.uniform(0.2, 0.9, n), below))
    got = difference(*(
        [numbered(above, statistic="ratio", bounds=intervals.UNBOUNDED, denominators=below)]
        for above, below in ratios
    ))  # fmt: skip
    whole = [above.sum() / below.sum() for above, below in ratios]
    assert got.value == pytest.approx(whole[0] - whole[1])

    def without(i):
        keep = np.arange(n) != i
        parts = [above[keep].sum() / below[keep].sum() for above, below in ratios]
        return parts[0] - parts[1]

    left = np.array([without(i) for i in range(n)])
    error = math.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum())
    assert (got.high - got.low) / 2 == pytest.approx(stats.t.ppf(1 - TAIL, n - 1) * error, rel=0.1)


def test_a_rows_number_of_a_text_is_the_mean_over_the_seeds_that_have_it():
    rng = np.random.default_rng(5)
    seeds = [rng.random(20) for _ in range(2)]
    other = rng.random(25)
    row = [numbered(seeds[0], np.arange(20)), numbered(seeds[1], np.arange(5, 25))]
    got = difference(row, [numbered(other)])
    by_text = []
    for i in range(25):
        known = [seeds[0][i]] if i < 20 else []
        known += [seeds[1][i - 5]] if i >= 5 else []
        by_text.append(np.mean(known) - other[i])
    assert (got.n, got.paired) == (25, True)
    assert got.value == pytest.approx(np.mean(by_text))


def test_a_difference_is_certain_over_seeds_only_if_no_two_seeds_overlap():
    rng = np.random.default_rng(6)
    noise = 0.02 * rng.random((4, 50))
    high, higher, low = 0.8 + noise[0], 0.9 + noise[1], 0.2 + noise[2]
    certain = difference([numbered(high), numbered(higher)], [numbered(low)])
    assert certain.seeds_apart
    assert certain.certain
    overlapping = difference([numbered(high), numbered(low)], [numbered(0.3 + noise[3])])
    assert overlapping.excludes_zero
    assert overlapping.seeds_apart is False
    assert not overlapping.certain
    assert overlapping.word == "not certain: the seeds overlap"
    assert difference([numbered(high)], [numbered(low)]).seeds_apart is None


def test_occurrences_of_a_text_count_once():
    rng = np.random.default_rng(7)
    values = rng.random(20)
    once = difference([numbered(values)], [numbered(1 - values)])
    twice = np.repeat(values, 2)
    texts = np.repeat(np.arange(20), 2)
    got = difference([numbered(twice, texts=texts)], [numbered(1 - twice, texts=texts)])
    assert (got.low, got.high) == pytest.approx((once.low, once.high))


@pytest.mark.parametrize("kind", ["mean", "median", "shares"])
def test_more_comparisons_need_wider_intervals(kind):
    rng = np.random.default_rng(8)
    runs = [rng.random((2, 80)) for _ in range(12)]
    if kind == "shares":
        runs = [(pair < 0.4).astype(float) for pair in runs]
    statistic = "median" if kind == "median" else "mean"
    rows = {
        f"q{i}": [[numbered(values, statistic=statistic)] for values in pair]
        for i, pair in enumerate(runs)
    }
    for got in differences(rows, [(0, 1)]):
        assert got.strict_low < got.low <= got.value <= got.high < got.strict_high


@SLOW
@pytest.mark.parametrize("shared", [True, False])
def test_where_nothing_differs_hardly_any_comparison_is_called_certain(shared):
    """Of all twelve questions together at most 5 % of the tries should call any difference certain."""
    rng = np.random.default_rng(9)
    wrong = 0
    for _ in range(60):
        rows = {}
        for i in range(12):
            values = rng.beta(0.7, 2.0, (2, 25)) if i % 2 else (rng.random((2, 25)) < 0.2) * 1.0
            ids = np.arange(25) + (0 if shared else 25)
            rows[f"q{i}"] = [[numbered(values[0])], [numbered(values[1], ids)]]
        wrong += any(got.certain for got in differences(rows, [(0, 1)]))
    assert wrong <= stats.binom.ppf(0.999, 60, 0.05)


def test_of_many_rows_each_is_compared_with_the_first():
    assert compared_pairs(3) == [(0, 1), (0, 2), (1, 2)]
    assert compared_pairs(7) == [(0, i) for i in range(1, 7)]


# --- maps ---------------------------------------------------------------------------------------------------


def test_the_texts_whose_maps_differ_most_are_those_of_a_slow_search():
    rng = np.random.default_rng(0)
    maps = []
    for _ in range(2):
        texts = rng.permutation(30)[:25].tolist()
        maps.append({
            t: ([f"w{i}" for i in range(2 + t % 4)], rng.random(2 + t % 4)) for t in texts
        })  # fmt: skip
    (got,) = map_differences(maps, [(0, 1)])
    slow = []
    for text in range(30):
        if text in maps[0] and text in maps[1]:
            one, other = (m[text][1] for m in maps)
            apart = 0.0
            for a, b in zip(one, other, strict=True):
                apart += abs(a / sum(one) - b / sum(other)) / 2
            slow.append((apart, text))
    slow.sort(reverse=True)
    assert [*got.distances] == [text for _, text in slow]
    assert [*got.distances.values()] == pytest.approx([apart for apart, _ in slow])
    assert got.mean == pytest.approx(np.mean([apart for apart, _ in slow]))
    assert not got.skipped


def test_the_distance_is_0_of_equal_maps_and_1_of_maps_that_share_no_word():
    assert weight_distance(np.array([0.2, 0.8]), np.array([1.0, 4.0])) == 0
    assert weight_distance(np.array([0.0, 1.0]), np.array([3.0, 0.0])) == 1


def test_texts_that_cannot_be_compared_are_counted_with_the_reason():
    weights = np.array([0.5, 0.5])
    one = {
        0: (["a", "b"], weights), 1: (["a", "b"], weights), 2: (["a"], weights[:1]),
        3: (["a", "b"], np.array([0.5, np.nan])), 4: (["a", "b"], np.array([1.5, -0.5])),
        5: None, 6: (["a", "b"], weights * 0), 7: (["a", "b"], weights),
    }  # fmt: skip
    other = {text: (["A", "b"], weights) for text in range(7)} | {
        1: (["a", "bc"], weights),
        2: (["a"], weights[:1]),
    }
    (got,) = map_differences([one, other], [(0, 1)])
    assert [*got.distances] == [0], "the case of a word is that of a tokenizer"
    assert got.skipped == {OTHER_TOKENS: 1, ONE_TOKEN: 1, UNDEFINED: 3, IN_WINDOWS: 1}
    (nothing,) = map_differences([one, {}], [(0, 1)])
    assert math.isnan(nothing.mean)


def test_a_text_in_several_windows_has_no_single_map():
    table = pa.table({
        "tokens": [["a"], ["b"], ["c", "d"]], "attention": [[1.0], [1.0], [0.25, None]], "text": [0, 0, 1],
    })  # fmt: skip
    maps = maps_of(table, TextIds(np.array([8, 9]), np.array([8, 9])))
    assert maps[8] is None
    assert maps[9][0] == ["c", "d"]
    assert math.isnan(maps[9][1][1])


def test_a_sample_of_the_texts_keeps_those_that_differ_most_and_says_its_size():
    n = 100
    texts = [f"word{i} good" for i in range(n)]
    table = instances(texts)
    ids = text_ids([table, table])
    rng = np.random.default_rng(0)
    maps = [{i: (texts[i].split(), rng.random(2)) for i in range(n)} for _ in range(2)]
    compared = map_differences(maps, [(0, 1)])
    run = NamedAudit("run", make_audit(n=4))
    shown = shown_texts([run, run], [table, table], ids, maps, compared, most=40)
    assert len(shown.texts) == 40
    assert {*[*compared[0].distances][:EXTREMES]} <= {text["id"] for text in shown.texts}
    assert shown.note.startswith("40 of 100 texts")
    again = shown_texts([run, run], [table, table], ids, maps, compared, most=40)
    assert again == shown
    assert shown_texts([run, run], [table, table], ids, maps, compared).note == ""


# --- rows ---------------------------------------------------------------------------------------------------


def with_settings(name, made_audit=None, **parts):
    """An audit under a name, with other settings."""
    original = made_audit or make_audit(n=12)
    values = original.settings.model_dump(exclude_none=True)
    for part, changes in parts.items():
        values[part] = {**values.get(part, {}), **changes} if isinstance(changes, dict) else changes
    return NamedAudit(name, replace(original, settings=RunSettings.of(**values)))


def test_runs_that_differ_in_the_seed_alone_are_one_row():
    runs = [
        with_settings("mine-0"),
        with_settings("cnn", model={"encoder": "cnn"}),
        with_settings("mine-1", train={"seed": 1}, audit={"seed": 1}),
        with_settings("more", train={"seed": 1, "epochs": 9}),
        with_settings("other texts", fingerprint="1" * 16),
        with_settings("mine-2", train={"seed": 2}, data={"seed": 2}, fingerprint="2" * 16),
        with_settings("copy"),
    ]
    rows = seed_rows(runs)
    assert [[run.name for run in row.runs] for row in rows] == [
        ["mine-0", "mine-1", "mine-2"], ["cnn"], ["more"], ["other texts"], ["copy"],
    ]  # fmt: skip
    assert [row.title for row in rows[:2]] == ["A: mine (3 seeds)", "B: cnn"]
    assert [letter(i) for i in (0, 25, 26, 52)] == ["A", "Z", "AA", "BA"]


def distinct(audit):
    """The same audit with a different text in every row."""
    table = audit.tables["instances"]
    tokens = [
        [*words[:-1], f"{words[-1]}{i}"] for i, words in enumerate(table["tokens"].to_pylist())
    ]
    table = table.set_column(table.column_names.index("tokens"), "tokens", pa.array(tokens))
    return replace(audit, tables={**audit.tables, "instances": table})


def audits(**changes):
    """Two hand-made audits with other models, and numbers that differ by chance alone."""
    made_audit = distinct(make_audit(n=24))
    other = with_settings("other", made_audit, model={"encoder": "cnn"}, **changes).audit
    return [distinct(make_audit(n=40)), replace(other, about={**other.about, "name": "other"})]


@pytest.fixture(scope="module")
def made():
    return compare(audits())


def test_only_the_settings_that_differ_are_listed(made):
    assert {s.name: s.values for s in made.settings} == {
        "model encoder": ("lstm", "cnn"), "audit texts": ("40", "24"),
    }  # fmt: skip


def test_audits_with_other_settings_say_so():
    got = compare(audits(audit={"instances": 30, "epsilon": 0.02}))
    (note,) = (note for note in got.notes if "settings" in note)
    assert "instances A 2000, B 30" in note
    assert "epsilon A 0.01, B 0.02" in note


def test_a_question_that_a_row_lacks_is_missing_there_and_not_left_out():
    first, second = audits()
    without = {name: t for name, t in second.tables.items() if name != "permutation"}
    findings = [f for f in second.findings if f.key != "permutation"]
    assert len(findings) < len(second.findings)
    for pair in (
        [first, replace(second, tables=without, findings=findings)],
        [replace(second, tables=without, findings=findings), first],
    ):
        got = compare(pair)
        keys = [question.key for question in got.questions]
        assert [*map(str, keys)] == [f.key for f in first.findings], "in the order of the card"
        question = got.questions[keys.index("permutation")]
        texts = [answer.text for answer in question.answers]
        assert texts.count("missing") == 1
        assert re.search(r"Missing in [AB]: not asked there\.", question.sentence)
        assert question.differences == []


def test_numbers_of_another_measure_are_not_compared():
    first, second = audits()
    findings = [
        replace(f, measure="something else") if f.key == "adversary" else f for f in second.findings
    ]
    got = compare([first, replace(second, findings=findings)])
    (question,) = (q for q in got.questions if q.key == "adversary")
    assert question.differences == []
    assert "B: something else" in question.sentence


def test_a_sentence_names_the_higher_row_and_its_interval():
    first, second = audits()
    columns = second.tables["permutation"].column_names
    flat = second.tables["permutation"].set_column(
        columns.index("median_tvd"), "median_tvd", pa.array(np.linspace(0.001, 0.002, 24))
    )
    rng = np.random.default_rng(0)
    high = first.tables["permutation"].set_column(
        columns.index("median_tvd"), "median_tvd", pa.array(rng.uniform(0.8, 0.9, 40))
    )
    got = compare([
        replace(second, tables={**second.tables, "permutation": flat}),
        replace(first, tables={**first.tables, "permutation": high}),
    ])  # fmt: skip
    (question,) = (q for q in got.questions if q.key == "permutation")
    assert re.fullmatch(
        r"Certain: B is above A by 0\.8\d \[0\.[78]\d, 0\.[89]\d\]\.", question.sentence
    )
    assert question.differences[0].value < 0


def test_labels_that_changed_between_versions_of_the_data_are_counted():
    first, second = make_audit(n=24), make_audit(n=24)
    table = second.tables["instances"]
    labels = 1 - table["label"].to_numpy()
    changed = table.set_column(table.column_names.index("label"), "label", pa.array(labels))
    settings = with_settings("b", second, fingerprint="1" * 16).audit.settings
    got = compare(
        [first, replace(second, settings=settings, tables={**second.tables, "instances": changed})]
    )
    assert any(note.startswith("24 texts with another label") for note in got.notes)


def test_other_classes_are_said():
    three = with_settings("three", make_audit(n=24, classes=3), fingerprint="1" * 16).audit
    assert any("classes differ" in note for note in compare([make_audit(n=24), three]).notes)


def test_a_model_that_names_its_classes_otherwise_has_those_of_the_data():
    first, other = audits(data={"classes": ("a<b", "plain")}, fingerprint="1" * 16)
    first = distinct(make_audit(n=24))
    got = compare([first, replace(other, classes=["class0", "class1"])])
    assert not any("classes" in s.name for s in got.settings)
    assert not any("label" in note or "classes" in note for note in got.notes)
    assert {r["predicted"] for t in got.texts.texts for r in t["runs"] if r} <= {"a<b", "plain"}


# --- what is shown ------------------------------------------------------------------------------------------


def test_no_text_name_or_label_can_act_on_the_page(made, tmp_path):
    path = made.save(tmp_path / "compare.html")
    text = path.read_text("utf-8")
    page = Elements(text)
    tags = [tag for tag, _ in page.found]
    assert tags.count("script") == 4, "two of data, two of ours"
    assert "img" not in tags
    assert not any(name.startswith("on") for _, found in page.found for name in found)
    assert "alert(2)</script>" not in text
    policy = next(
        found["content"] for tag, found in page.found if "Content-Security-Policy" in found.values()
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="(?!#)', text.split("<script")[0])
    data = json.loads(re.search(r'id="maps-data">(.*?)</script>', text, re.S)[1])
    assert data["texts"][0]["runs"][0]["tokens"][0] == "<script>alert(1)</script>"


def test_the_same_comparison_gives_the_same_bytes(made, tmp_path):
    first = made.save(tmp_path / "a.html").read_bytes()
    assert compare(audits()).save(tmp_path / "b.html").read_bytes() == first


def test_a_comparison_shows_itself_in_a_notebook_and_a_terminal(made, capsys):
    assert repr(made).startswith("Comparison of 2 runs: ")
    html = Elements(made._repr_html_())
    assert {tag for tag, _ in html.found} <= {"div", "b", "table", "tr", "th", "td"}
    made.show()
    assert "model encoder" in capsys.readouterr().out


def test_the_terminal_names_every_certain_order_and_fits_80_columns(capsys):
    """A number that is .5 higher in each of 40 texts is certainly higher."""
    low = distinct(make_audit(n=40))
    shuffled = low.tables["permutation"]
    place = shuffled.column_names.index("median_tvd")
    raised = pa.array(shuffled["median_tvd"].to_numpy() + 0.5)
    tables = {**low.tables, "permutation": shuffled.set_column(place, "median_tvd", raised)}
    high = replace(low, tables=tables, about={**low.about, "name": "high"})
    got = compare([low, high])
    orders = [(q.topic, d.value < 0) for q in got.questions for d in q.differences if d.certain]
    assert orders
    got.show()
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    for topic, is_lower in orders:
        assert f"{topic}: A {'<' if is_lower else '>'} B" in printed


def test_the_frames_have_a_row_per_question_difference_setting_and_text(made):
    frame = made.to_dataframe()
    assert len(frame) == 2 * len(made.questions)
    assert {"key", "row", "value", "level", "lowest", "highest", "n"} <= {*frame}
    assert len(made.to_dataframe("differences")) == sum(len(q.differences) for q in made.questions)
    assert made.to_dataframe("settings").to_dict("records")[0]["A"] == "lstm"
    assert len(made.to_dataframe("maps")) == len(made.maps[0].distances)
    with refused("no table 'x'", "questions"):
        made.to_dataframe("x")


def test_the_json_has_its_schema_and_the_most_different_texts(made):
    content = made.to_json()
    assert content["schema"] == 1
    (pair,) = content["maps"]
    distances = [text["distance"] for text in pair["texts"]]
    assert len(distances) == 5
    assert distances == sorted(distances, reverse=True)
    assert pair["skipped"] == {ONE_TOKEN: 6}
    assert [row["row"] for row in content["rows"]] == ["A", "B"]


# --- what is refused ----------------------------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused_in_one_line():
    audit = make_audit(n=8)
    with refused("two", "0"):
        compare([])
    with refused("two", "1"):
        compare([audit])
    with refused("once", "twice"):
        compare([audit, audit])
    with refused("list of runs", kind=TypeError):
        compare("runs/mine")
    with refused("folder or an audit", kind=TypeError):
        compare([audit, 3])


@pytest.fixture(scope="module")
def folders(tmp_path_factory, reviews):
    """Two seeds of one model, another model, and one that is not audited."""
    root = tmp_path_factory.mktemp("runs")
    for name, encoder, seed in (
        ("avg-0", "average", 0),
        ("avg-1", "average", 1),
        ("none", "none", 0),
    ):
        run = hm.train(
            reviews,
            encoder=encoder,
            embedding_size=8,
            epochs=1,
            seed=seed,
            out=root / name,
            progress=False,
        )
        hm.audit(run, instances=30, permutations=3, progress=False)
    hm.train(
        reviews, encoder="none", embedding_size=8, epochs=1, out=root / "trained", progress=False
    )
    return root


@SLOW
def test_the_command_writes_the_page_and_prints_the_answers(heedmap, folders, tmp_path):
    out = tmp_path / "seeds.html"
    done = heedmap(
        "compare", *(folders / name for name in ("avg-0", "avg-1", "none")), "--out", out
    )
    assert done.code == 0, done.err
    assert "A: avg (2 seeds)" in done.out
    assert "All rows have the same 30 texts" in done.out.replace("\n", " ")
    assert str(out) in done.out
    assert "avg-0 and avg-1" in out.read_text("utf-8")
    # Each seed says its own, and none that others were not tried.
    for seed in ("avg-0", "avg-1"):
        assert f"{seed}: " in done.out
    assert "other seeds were not tried" not in done.out.split("B: none")[0].replace("\n", " ")
    out.write_text("mine")
    asked = ("compare", folders / "avg-0", folders / "none", "--out", out)
    stopped(heedmap(*asked), "seeds.html", "--overwrite")
    assert out.read_text() == "mine"
    assert heedmap(*asked, "--overwrite").code == 0
    assert out.read_text("utf-8") != "mine"


@SLOW
def test_a_copy_of_a_run_is_named_as_one(folders, tmp_path):
    copy = shutil.copytree(folders / "none", tmp_path / "copy")
    notes = hm.compare([folders / "none", copy]).notes
    assert "none and copy have the same settings and the same numbers" in notes[0]
    assert not any(
        "copy" in note for note in hm.compare([folders / "none", folders / "avg-0"]).notes
    )


@SLOW
def test_json_is_one_document_and_writes_no_page_unless_it_is_named(
    heedmap, folders, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = heedmap("compare", folders / "avg-0", folders / "none", "--json")
    assert json.loads(done.out)["schema"] == 1
    assert not [*tmp_path.iterdir()]


@SLOW
def test_a_reproduction_stands_for_the_audited_runs_in_it(folders, tmp_path):
    grid = tmp_path / "grid"
    (grid / "parts").mkdir(parents=True)
    with refused("grid", "audited runs"):
        compare([grid, folders / "none"])
    shutil.copytree(folders, grid / "cells")
    (grid / "result.md").write_text("# A grid\n")
    with pytest.warns(UserWarning, match="trained"):
        rows = compare([grid]).rows
    assert [[run.name for run in row.runs] for row in rows] == [["avg-0", "avg-1"], ["none"]]


@SLOW
@pytest.mark.parametrize(
    ("names", "named"),
    [
        (["avg-0"], ["two", "1"]),
        (["avg-0", "avg-0"], ["avg-0", "once", "twice"]),
        (["avg-0", "nowhere"], ["nowhere", "no run"]),
        (["avg-0", "trained"], ["trained", "not audited", "heedmap audit --run"]),
    ],
)
def test_the_command_refuses_in_one_line(heedmap, folders, names, named):
    stopped(heedmap("compare", *(folders / name for name in names)), *named)


@SLOW
def test_a_page_of_another_ending_is_refused_before_anything_is_read(heedmap, folders, tmp_path):
    out = tmp_path / "compare.pdf"
    stopped(
        heedmap("compare", folders / "avg-0", folders / "none", "--out", out),
        "compare.pdf",
        ".html",
    )
