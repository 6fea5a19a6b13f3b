"""Audits of untrained models of every kind on texts of made-up words, all of whose questions are asked."""

import numpy as np
import pytest
import torch
from made_audits import put_tables
from making import SETTINGS
from tiny_transformers import tiny_classifier

from heedmap.data.corpus import Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.experiments.context import AuditContext
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.registry import (
    applicable,
    make_findings,
    numbers_by_finding,
    registered,
)
from heedmap.files.identity import identity
from heedmap.files.table_folder import TableFolder
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.runs.audit_folder import conclude, put_about
from heedmap.runs.audited import Audit
from heedmap.runs.folder import RunFolder
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings

WORDS = [f"zqword{i:02d}" for i in range(20)]
ASKED = [f"yqasked{i}" for i in range(4)]
IDS = [f"customer-{i:03d}" for i in range(6)]
CLASSES = ["glad", "sad"]
QUICK = SETTINGS.model_copy(
    update={
        "permutations": 3, "integrated_gradients_steps": 2, "search_restarts": 1, "search_steps": 2,
        "descent_steps": 2,
    }
)  # fmt: skip
KINDS = (
    "own",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("pairs", "sentences", "transformer")),
)

APART = ("best_map_leave_one_out", "skill")  # undefined for few texts, or without labels


def tiny_audit(kind, lengths=(4, 6, 1, 9, 5, 7)):
    """Audit a model of one of KINDS on texts of so many tokens."""
    rng = np.random.default_rng(0)
    tokens = [[WORDS[i] for i in rng.integers(0, len(WORDS), n)] for n in lengths]
    more = {"rationale": [np.arange(n) == 0 for n in lengths]} if kind == "own" else {}
    if kind == "pairs":
        more = {"queries": [[ASKED[i % 4], ASKED[0]] for i in range(len(lengths))]}
    if kind == "sentences":
        tokens = [[f"{word} {WORDS[i]}" for i, word in enumerate(text)] for text in tokens]
    keys = [f"customer-{i:03d}" for i in range(len(lengths))]
    split = Split(keys, tokens, np.arange(len(lengths)) % 2, **more)
    model = tiny_classifier() if kind == "transformer" else own_model(kind)
    context = AuditContext(model, split, QUICK, registered())
    tables = {name: context.table(name) for name in applicable(model, split)}
    data = {"tokenizer": "sentences"} if kind == "sentences" else {}
    settings = RunSettings(
        fingerprint="0" * 16,
        data=DataSettings(source="made", **data),
        model=model.settings,
        train=None if kind == "transformer" else TrainSettings(),
        audit=QUICK,
    )
    rates = packaged_rates()
    findings = make_findings(tables, QUICK, model.classes, model.settings, rates)
    return Audit(settings, model.classes, tables, findings, {"name": "made"}, rates)


def check_numbers(audit):
    """Check that a finding's value is the statistic of the numbers kept under its key."""
    settings = audit.settings
    numbers = numbers_by_finding(
        audit.tables, settings.audit, audit.classes, settings.model, audit.rates
    )
    keys = [finding.key for finding in audit.findings]
    assert len({*keys}) == len(keys)
    assert {*keys} - {*APART} <= {*numbers} <= {*keys}
    for finding in audit.findings:
        if finding.key not in numbers or np.isnan(finding.value):
            continue
        of_texts = numbers[finding.key]
        if of_texts.denominators is None:
            value = {"mean": np.nanmean, "median": np.nanmedian}[of_texts.statistic](
                of_texts.values
            )
        else:
            value = np.nansum(of_texts.values) / np.nansum(of_texts.denominators)
        assert finding.value == pytest.approx(value), finding.key
        assert finding.n == np.isfinite(of_texts.values).sum(), finding.key


def own_model(kind):
    """Make an untrained model of heedmap's own that knows all of WORDS and ASKED."""
    makers = {"own": TextClassifier, "pairs": PairClassifier, "sentences": HierarchicalClassifier}
    settings = ModelSettings(encoder="lstm", embedding_size=8, hidden_size=8)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = makers[kind](settings, Vocabulary([*WORDS, *ASKED]), CLASSES)
    return model.eval().requires_grad_(False)


def told(text):
    """The words, queries and ids of the data that stand in a text."""
    return [word for word in (*WORDS, *ASKED, *IDS) if word in text]


@pytest.fixture
def folder(tmp_path):
    """A run folder with an audit of texts."""
    audit = tiny_audit("own")
    run = RunFolder(put_tables(audit, tmp_path / "run"))
    put_about(audit, _tables(audit, run), "")
    conclude(audit, run)
    return run.path


def _tables(audit, run):
    return TableFolder(run.tables, identity(audit.settings, "", audit.classes))
