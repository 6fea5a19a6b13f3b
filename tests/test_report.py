"""The card, the figures, the instances and the page, on small audits made by hand."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from heedmap.experiments.results import make_findings
from heedmap.measures import LN2
from heedmap.report.card import card
from heedmap.report.figures import figures
from heedmap.report.page import page
from heedmap.report.picks import pick_instances
from heedmap.runs.audit import Audit
from heedmap.settings import RunSettings

EVIL = ["<script>alert(1)</script>", "</script><b>", "[red]markup[/red]", "<!--", "\x1b[31mred"]
CLASSES = ["a<b", "plain", "[bold]third", *(f"class {i}" for i in range(3, 40))]
MEASURES = ("attention", "gradient", "leave_one_out", "integrated_gradients")


def make_audit(
    n: int = 40, classes: int = 2, lengths: tuple[int, ...] = (12, 9, 1, 20), gold: bool = True
) -> Audit:
    """Random numbers of the right shapes; every text has the bad tokens, whichever are shown."""
    rng = np.random.default_rng(0)
    sizes = [lengths[i % len(lengths)] for i in range(n)]
    tokens = [
        [EVIL[(i + t) % 4] if t % 2 == 0 else f"w{t}" for t in range(size)]
        for i, size in enumerate(sizes)
    ]
    attention = [rng.dirichlet(np.ones(size) * 0.3) for size in sizes]
    probabilities = rng.dirichlet(np.ones(classes) * 0.3, size=n)
    predicted = probabilities.argmax(-1)
    alone = np.array(sizes) < 2

    def numbers(low: float, high: float) -> np.ndarray:
        return np.where(alone, np.nan, rng.uniform(low, high, n))

    def importance() -> list[list[float]]:
        return [[math.nan] if size == 1 else rng.random(size).tolist() for size in sizes]

    shared = {
        "predicted": predicted,
        "n_tokens": sizes,
        "max_attention": [float(a.max()) for a in attention],
    }
    jsd = np.where(alone, 0.0, rng.uniform(0, LN2, n))
    upper = jsd if classes == 2 else np.minimum(jsd + 0.05, LN2)
    instances = {
        "row": range(n),
        "key": [f"key<{i}>" for i in range(n)],
        "tokens": tokens,
        **shared,
        "label": rng.integers(0, classes, n),
        "probabilities": probabilities.tolist(),
        "entropy": rng.random(n),
        "attention": [a.tolist() for a in attention],
    }
    integrated = [x if i % 2 else None for i, x in enumerate(importance())]
    agreement = {"row": range(n), "predicted": predicted}
    for a in range(4):
        for b in range(a + 1, 4):
            tau = numbers(-1, 1)
            if b == 3:
                tau = np.where(np.arange(n) % 2 == 1, tau, np.nan)
            agreement[f"tau_{MEASURES[a]}_{MEASURES[b]}"] = tau
            agreement[f"p_{MEASURES[a]}_{MEASURES[b]}"] = numbers(0, 1)
    tables = {
        "instances": instances,
        "gradient": {"row": range(n), "importance": importance()},
        "leave_one_out": {"row": range(n), "importance": importance()},
        "integrated_gradients": {
            "row": range(n),
            "importance": pa.array(integrated, pa.list_(pa.float64())),
        },
        "agreement": agreement,
        "permutation": {
            **shared,
            "median_tvd": np.where(alone, 0, rng.random(n)),
            "flipped": np.where(alone, 0, rng.random(n)),
        },
        "adversary": {
            **shared,
            "jsd": jsd,
            "jsd_upper": upper,
            "search_jsd": jsd / 2,
            "search_found": rng.random(n) < 0.9,
            "curve_lower": [[x * k / 7 for k in range(7)] for x in jsd],
            "curve_upper": [[x * k / 7 for k in range(7)] for x in upper],
            "attention": [rng.dirichlet(np.ones(size)).tolist() for size in sizes],
        },
    }
    if gold:
        marks = [[t == 0 for t in range(size)] for size in sizes]
        instances["rationale"] = marks
        tables["rationale"] = {
            "row": range(n),
            "predicted": predicted,
            "rationale_share": [float(np.mean(m)) for m in marks],
            **{f"auc_{m}": numbers(0, 1) for m in MEASURES},
            **{f"hit_{m}": numbers(0, 1) for m in MEASURES},
        }
    made = {
        name: pa.table({k: pa.array(v) if not isinstance(v, pa.Array) else v for k, v in t.items()})
        for name, t in tables.items()
    }
    settings = RunSettings.of(
        fingerprint="0" * 16, data={"source": "my [bold]data</pre>"}, model={}, train={}, audit={}
    )
    assert settings.audit is not None
    about: dict[str, object] = {
        "name": "</title><script>alert(2)</script>",
        "test_texts": n + 5,
        "audited": n,
        "left_out": {"test: label missing": 7},
        "unknown_share": 0.1,
        "training": [{"accuracy": 0.5, "f1": 0.4}, {"accuracy": 0.75, "f1": 0.7}],
        "best_epoch": 1,
    }
    names = CLASSES[:classes]
    findings = make_findings(made, settings.audit, names)
    return Audit(settings, names, made, findings, about)


def printed(audit: Audit, width: int) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(card(audit))
    return console.export_text()


@pytest.fixture(scope="module")
def audit() -> Audit:
    return make_audit()


@pytest.fixture(scope="module")
def html(audit: Audit) -> str:
    return page(audit)


class Elements(HTMLParser):
    """Every start tag with its attributes, as a browser's parser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("width", [80, 120])
def test_the_card_shows_every_finding_whole(classes: int, width: int) -> None:
    audit = make_audit(classes=classes)
    text = printed(audit, width)
    assert max(len(line) for line in text.splitlines()) <= width
    for finding in audit.findings:
        assert finding.question in text
        assert f"n = {finding.n}" in text
    assert "40 of 45 test texts" in text
    assert "test: label missing: 7" in text
    assert "undefined: one token: 10" in text  # a fourth of the texts


def test_the_card_takes_nothing_for_markup(audit: Audit) -> None:
    assert "my [bold]data</pre>" in printed(audit, 80)


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
    assert "unsafe-eval" not in policies[0]
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
    spec = figures(audit)[0].spec
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
    picks = pick_instances(audit.tables)
    rows = [pick.row for pick in picks]
    assert 6 <= len(rows) <= 10
    assert len(set(rows)) == len(rows)
    assert picks == pick_instances(audit.tables)
    assert all(pick.reason.endswith((".", "?")) for pick in picks)


def test_telling_instances_are_what_they_say() -> None:
    audit = make_audit(n=200, lengths=(6, 9, 15, 30))
    table = {name: t.to_pylist() for name, t in audit.tables.items()}
    for pick in pick_instances(audit.tables):
        one = {name: rows[pick.row] for name, rows in table.items()}
        if pick.title == "Another heat map, the same prediction":
            assert one["adversary"]["jsd"] >= 0.5 * LN2
        if pick.title == "Sure and wrong":
            assert one["instances"]["label"] != one["instances"]["predicted"]
        if pick.title == "Attention misses the deciding words":
            assert one["rationale"]["auc_attention"] < 0.5
        if pick.title == "Shuffling turns the answer over":
            assert one["permutation"]["flipped"] >= 0.5


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("lengths", [(1,), (1, 7, 2)])
def test_tiny_audits_are_shown(n: int, lengths: tuple[int, ...]) -> None:
    audit = make_audit(n=n, lengths=lengths)
    assert sorted(pick.row for pick in pick_instances(audit.tables)) == list(range(n))
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
    html = page(make_audit(n=1, lengths=(512,), gold=False))
    assert html.count('<span style="--w:') == 512 * 4  # not sampled for integrated gradients


def test_shades_are_shares_of_the_largest_weight(html: str) -> None:
    shades = [float(x) for x in re.findall(r'<span style="--w:([\d.]+)"', html)]
    assert max(shades) == 1
    assert min(shades) >= 0
