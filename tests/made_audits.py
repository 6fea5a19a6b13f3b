"""Hand-made audits with harmful texts and names, and readers of their card and page."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
from rich.console import Console

from heedmap.experiments.registry import make_findings
from heedmap.measures import LN2
from heedmap.report.card import card
from heedmap.runs.audit_folder import keep_tables
from heedmap.runs.audited import Audit
from heedmap.runs.folder import RunFolder
from heedmap.settings.run import RunSettings

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
            "completeness_error": [None if x is None else 0.01 for x in integrated],
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
    left_out = tables["leave_one_out"]  # a third of the words speaks against the answer
    left_out["signed"] = [
        [x if t % 3 else -x for t, x in enumerate(v)] for v in left_out["importance"]
    ]
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
    """The card on a terminal of this width."""
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(card(audit))
    return console.export_text()


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


def with_style_attributes(html: str) -> str:
    """The page with each element's own style in its attribute, as its style sheet has it by number."""
    rules = dict(re.findall(r'^\[data-s="(\d+)"\]\{([^}]*)\}$', html, re.M))
    styled = re.sub(r' data-s="(\d+)"', lambda match: f' style="{rules[match[1]]}"', html)
    assert len(re.findall(' data-s="', html)) == len(re.findall(' style="', styled))
    return styled


def put_tables(audit, folder):
    """Keep an audit's tables in a run folder, as yet without findings; return its path."""
    RunFolder(folder).write_settings(audit.settings)
    keep_tables(audit, RunFolder(folder), weights="", files_beside={})
    return folder
