"""The card, the figures, the instances and the page, on small hand-made audits."""

import re
from dataclasses import replace

import pytest
from made_audits import Elements, make_audit, printed, with_style_attributes
from made_rates import rates

from heedmap.experiments.registry import make_findings
from heedmap.measures import LN2
from heedmap.report.card_files import card_file
from heedmap.report.examples import choose_examples
from heedmap.report.figures import figures
from heedmap.report.page import page
from heedmap.report.wording import overview_number
from heedmap.runs.audited import Audit
from heedmap.settings.run import RunSettings


@pytest.fixture(scope="module")
def audit() -> Audit:
    return make_audit()


@pytest.fixture(scope="module")
def html(audit: Audit) -> str:
    return page(audit)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("width", [80, 120])
def test_the_card_shows_every_finding_whole(classes: int, width: int) -> None:
    audit = make_audit(classes=classes)
    text = printed(audit, width)
    assert max(len(line) for line in text.splitlines()) <= width
    for finding in audit.findings:
        assert finding.question in text
        assert f"n = {finding.n}" in text
    assert "[ ] 95 % interval over texts, of this one model ─" in text
    assert "40 of 45 test texts" in text
    assert "test: label missing: 7" in text
    assert "undefined: one token: 10" in text  # a fourth of the texts


def test_on_a_narrow_terminal_the_overview_keeps_words_and_numbers_whole(audit: Audit) -> None:
    lines = printed(audit, 40).splitlines()
    text = " ".join(" ".join(line.strip("│") for line in lines).split())
    judged = [f for f in audit.findings if f.level != "for comparison"]
    assert judged
    for finding in judged:
        assert f"{finding.topic or finding.question} {overview_number(finding)}" in text


def test_the_card_takes_nothing_for_markup(audit: Audit) -> None:
    assert "my [bold]data</pre>" in printed(audit, 80)


def test_what_leaves_the_house_names_data_and_models_without_their_paths(audit: Audit) -> None:
    home = "/home/ann/secret"
    settings = RunSettings.of(
        fingerprint="0" * 16,
        data={"source": f"{home}/reviews.csv"},
        model={},
        train={"vectors": f"{home}/glove.txt"},
        audit={},
        variant="adversary",
        parent=f"{home}/first",
    )
    named = replace(audit, settings=settings, rates=rates())
    for shown in (printed(named, 200), page(named), repr(named), str(card_file(named, "md"))):
        assert "secret" not in shown
        assert "reviews.csv" in shown
    hub = settings.model_copy(update={"data": settings.data.model_copy(update={"source": "a/b"})})
    assert "Audit of a/b:" in repr(replace(named, settings=hub))


def test_text_of_the_data_stays_text(html: str) -> None:
    for evil in ("<script>alert", "</script><b>", "<!--", "a<b", "key<", "data</pre>"):
        assert evil not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\x1b" not in html
    assert "a&lt;b" in html
    elements = Elements(html)
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert len([s for s in scripts if s.get("type") != "application/json"]) == 2
    assert not [name for _, a in elements.found for name in a if name.startswith("on")]
    assert not [tag for tag, _ in elements.found if tag == "b" and "alert" in tag]


def test_the_page_fetches_nothing(html: str) -> None:
    elements = Elements(html)
    for tag, attributes in elements.found:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    policies = [
        a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert policies[0] is not None
    assert policies[0].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policies[0]
    assert not [tag for tag, attributes in elements.found if "style" in attributes]
    assert "url(" not in html[: html.index("</style>")]


def test_links_inside_the_page_have_their_places(html: str) -> None:
    ids = [a["id"] for _, a in Elements(html).found if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in Elements(html).found:
        if "href" in attributes:
            assert (attributes["href"] or "").removeprefix("#") in ids
        if "data-chart" in attributes:
            assert attributes["data-chart"] in ids


def test_same_tables_same_bytes(html: str) -> None:
    assert page(make_audit()) == html


def test_the_page_is_small(html: str) -> None:
    assert len(html.encode()) < 3_000_000


def test_the_page_says_what_was_left_out_and_which_settings(audit: Audit, html: str) -> None:
    text = " ".join(Elements(html).text)
    assert "test: label missing: 7" in text
    assert "40 of 45 test texts, a seeded sample" in text
    assert "undefined: one token: 10" in text
    for finding in audit.findings:
        assert finding.question in text
    assert "[train]" in text


def test_what_is_kept_is_not_shown_as_left_out(audit: Audit) -> None:
    counts = {"labels <trimmed> (kept)": 72, "empty text": 2, "cut to 50 tokens (kept)": 1}
    some = replace(audit, about={**audit.about, "left_out": counts})
    text = printed(some, 200)
    assert re.search(r"left out +empty text: 2 ", text)
    assert re.search(r"kept +labels <trimmed>: 72; cut to 50 tokens: 1 ", text)
    shown = page(some)
    assert "<dt>left out before the audit</dt><dd>empty text: 2</dd>" in shown
    assert "counted</dt><dd>labels &lt;trimmed&gt;: 72; cut to 50 tokens: 1</dd>" in shown
    without = page(replace(some, about={**some.about, "left_out": {"a (kept)": 1}}))
    assert "<dt>left out before the audit</dt><dd>nothing</dd>" in without


@pytest.mark.parametrize("classes", [2, 3])
def test_every_figure_says_its_n(classes: int) -> None:
    made = figures(make_audit(classes=classes))
    assert [f.key for f in made] == [
        "tau-gradient",
        "tau-leave-one-out",
        "tau-integrated-gradients",
        "tau-densities",
        "tau-differences",
        "entropy",
        "permutation",
        "adversary",
        "adversary-histogram",
        "search-histogram",
        "exact-search",
        "curve",
        "rationale",
    ]
    for figure in made:
        assert re.search(r"n = \d+", figure.n), figure.key
        assert figure.caption.endswith(".")
    told = {f.key: f.n for f in made}
    assert told["tau-gradient"] == "n = 30 texts, 10 without a τ left out"
    assert told["permutation"] == "n = 30 texts, 10 of one word left out"


def test_a_histogram_sums_to_one_for_each_class(audit: Audit) -> None:
    spec = figures(make_audit(n=300))[0].spec
    bars = next(rows for rows in spec["datasets"].values() if "share" in rows[0])
    totals: dict[str, float] = {}
    for bar in bars:
        totals[bar["series"]] = totals.get(bar["series"], 0) + bar["share"]
    assert totals == {name: pytest.approx(1, abs=0.01) for name in audit.classes}


def test_more_than_two_classes_are_told_as_bounds() -> None:
    titles = {f.key: f.title for f in figures(make_audit(classes=3))}
    assert "at least" in titles["adversary"]
    assert "at least" not in {f.key: f.title for f in figures(make_audit())}["adversary"]
    html = page(make_audit(classes=3))
    assert "largest JSD, at least" in html


def test_few_instances_are_points_and_the_figure_says_so() -> None:
    made = {f.key: f for f in figures(make_audit(n=8))}
    assert any("drawn as points" in note for note in made["adversary"].notes)


def test_telling_instances_are_chosen_once_and_always_the_same() -> None:
    audit = make_audit(n=200, lengths=(6, 9, 15, 30))
    examples = choose_examples(audit.tables, audit.classes)
    rows = [example.row for example in examples]
    assert 6 <= len(rows) <= 10
    assert len(set(rows)) == len(rows)
    assert examples == choose_examples(audit.tables, audit.classes)
    assert all(example.reason.endswith((".", "?")) for example in examples)


def test_telling_instances_are_what_they_say() -> None:
    audit = make_audit(n=200, lengths=(6, 9, 15, 30))
    table = {name: t.to_pylist() for name, t in audit.tables.items()}
    for example in choose_examples(audit.tables, audit.classes):
        one = {name: rows[example.row] for name, rows in table.items()}
        if example.title.startswith("Another heat map, the same prediction"):
            assert one["adversary"]["jsd"] >= 0.5 * LN2
            answer = audit.classes[one["instances"]["predicted"]]
            probability = max(one["instances"]["probabilities"])
            assert example.title.endswith(f": {answer}")
            assert (
                f"“{answer}” (the model's own probability of it is {probability:.3f})"
                in example.reason
            )
        if example.title == "Sure and wrong":
            assert one["instances"]["label"] != one["instances"]["predicted"]
        if example.title == "Attention misses the deciding words":
            assert one["rationale"]["auc_attention"] < 0.5
        if example.title == "Shuffling changes the answer":
            assert one["permutation"]["flipped"] >= 0.5


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("lengths", [(1,), (1, 7, 2)])
def test_tiny_audits_are_shown(n: int, lengths: tuple[int, ...]) -> None:
    audit = make_audit(n=n, lengths=lengths)
    assert sorted(example.row for example in choose_examples(audit.tables, audit.classes)) == list(
        range(n)
    )
    assert "Should you heed the heat map?" in printed(audit, 80)
    html = page(audit)
    if lengths == (1,):
        assert "not defined for a text of one word" in html
        assert figures(audit) == []


def test_an_audit_of_instances_alone_is_shown(audit: Audit) -> None:
    tables = {"instances": audit.tables["instances"]}
    assert audit.settings.audit is not None
    findings = make_findings(tables, audit.settings.audit, audit.classes)
    alone = Audit(audit.settings, audit.classes, tables, findings, audit.about)
    assert figures(alone) == []
    assert "learned attention" in page(alone)


def test_all_tokens_of_a_long_text_are_there() -> None:
    html = with_style_attributes(page(make_audit(n=1, lengths=(512,), gold=False)))
    assert html.count('<span style="--w:') == 512 * 4  # not sampled for integrated gradients


def test_words_against_the_answer_are_told_from_those_for_it_without_colour_too(
    audit: Audit, html: str
) -> None:
    elements = Elements(html)
    rows = with_style_attributes(html).split("<h4>")[1:]
    maps = {row.split(" <span")[0]: row.split("</p>")[0] for row in rows}
    assert {name for name, row in maps.items() if "contrary" in row} == {"leave-one-out"}
    row = maps["leave-one-out"]
    words = re.findall(r"<span style[^>]*>", row)
    told = [("contrary" in word, 'title="against: ' in word) for word in words]
    assert told == [(place % 3 == 0,) * 2 for place in range(len(words))]
    (style,) = re.findall(r"\.contrary \{ border-bottom: ([^;]*);", html)
    assert style == "2px dotted"
    assert ("span", {"class": "sample contrary"}) in elements.found


def test_a_table_of_leave_one_out_without_signs_is_shown(audit: Audit) -> None:
    unsigned = audit.tables["leave_one_out"].drop_columns(["signed"])
    html = page(replace(audit, tables={**audit.tables, "leave_one_out": unsigned}))
    assert 'title="against: ' not in html


def test_shades_are_shares_of_the_largest_weight(html: str) -> None:
    shades = [
        float(x) for x in re.findall(r'<span style="--w:([\d.]+)"', with_style_attributes(html))
    ]
    assert max(shades) == 1
    assert min(shades) >= 0
