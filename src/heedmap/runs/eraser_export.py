"""Write the rationales of an audited run as predictions in ERASER's layout, for the official scorer or ours."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedmap.data.documents import Document, documents, owners, without_rationales
from heedmap.data.eraser_predictions import BINS, LOSSES
from heedmap.data.texts import Text
from heedmap.errors import InputError
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.rankings import RANKINGS, Scores, scores_of
from heedmap.experiments.questions.eraser import counts_of, kept_by
from heedmap.experiments.registry import registered
from heedmap.files.identity import identity
from heedmap.files.storage import write_atomically
from heedmap.files.table_folder import TableFolder
from heedmap.importance.deletions import reread_kept
from heedmap.importance.rationale_agreement import chosen, spans
from heedmap.runs.audit import open_audit
from heedmap.runs.audit_defaults import audited_split
from heedmap.runs.folder import RunFolder
from heedmap.runs.open import open_run
from heedmap.runs.stored_models import weights_of

OTHER_TOKENS = "read as other tokens than the document's words, or cut: its words are scored"


def export(
    folder: Path, ranking: str, path: Path
) -> tuple[dict[str, Document], int, dict[str, int]]:
    """Write a line per audited text; return the run's documents, the number of lines, and counts of caveats.

    Soft predictions are a ranking's scores, hard ones its first words, as many as people mark on average
    (`count` of the table plausibility). A word of the document has the largest score of its tokens; words
    beyond where the model's text was cut come last. The other scores are the model's own, of the text without
    these words and of these alone: it reads them again.

    Raises:
        InputError: no finished audit, one of windows of long texts or of texts without marks; no such ranking.
    """
    if ranking not in RANKINGS:
        raise InputError(f"--ranking: expected one of {', '.join(RANKINGS)}, got {ranking}")
    audit = open_audit(folder)
    run = open_run(folder)
    settings = audit.settings.audit
    assert settings is not None
    split = audited_split(run.corpus, settings)
    if "classes" not in run.model.capabilities:
        raise InputError(
            f"{folder}: expected a model that decides between classes, as ERASER's scores do, got one that "
            "gives a number"
        )
    if split.rationale is None:
        raise without_rationales(run.settings.data.source)
    if split.text_of is not None:
        raise InputError(
            f"{folder}: expected whole texts, got windows; audit with --long-texts cut"
        )
    whole = documents(run.settings.data, run.corpus.in_memory)
    weights = weights_of(run.model, run.settings)
    made_of = identity(audit.settings, weights, run.model.classes)
    tables = TableFolder(RunFolder(folder).tables, made_of)
    evidence = AuditContext(run.model, split, settings, registered(), tables)
    counts = audit.tables["plausibility"]["count"].to_pylist()
    notes: Counter[str] = Counter()
    lines: dict[int, str] = {}
    rankings = scores_of(evidence, evidence.traces)
    for batch, trace in evidence.passes():
        to_reread = []
        for i, row in enumerate(batch.rows.tolist()):
            size, scores = len(evidence.texts[row]), rankings[row].get(ranking)
            if scores is None:
                notes[f"left out: no {RANKINGS[ranking]}: undefined, or not sampled"] += 1
            elif counts[row] >= size:
                notes["left out: nothing would be left without the rationale"] += 1
            elif owners(whole[split.keys[row]].words, split.tokens[row]) is None:
                notes["left out: tokens that are not the document's words"] += 1
            else:
                to_reread.append((i, row, scores))
        probabilities = _read_again(
            evidence, [(evidence.texts[row], s, counts[row]) for _, row, s in to_reread]
        )
        for (i, row, scores), reread in zip(to_reread, probabilities, strict=True):
            key = split.keys[row]
            predicted = trace.logits[i].double().softmax(-1)
            line = {
                "annotation_id": key,
                "rationales": [_rationale(whole[key], split.tokens[row], scores, counts[row])],
                **_classified(run.model.classes, predicted, reread),
            }
            is_verbatim = whole[key].words == [token.strip() for token in split.tokens[row]]
            notes[OTHER_TOKENS] += not is_verbatim
            lines[row] = json.dumps(line, ensure_ascii=False) + "\n"
    write_atomically(path, "".join(lines[row] for row in sorted(lines)))
    return whole, len(lines), dict(+notes)


def _read_again(
    evidence: AuditContext, texts: list[tuple[Text, Scores, int]]
) -> list[torch.Tensor]:
    """Return the probabilities (2, 1 + Q, C) without a ranking's first words, and with these alone."""
    masks = [kept_by(scores, [count, *counts_of(len(text))]) for text, scores, count in texts]
    logits = reread_kept(evidence.model, [text for text, _, _ in texts], masks)
    return [text_logits.softmax(-1).reshape(2, 1 + len(BINS), -1) for text_logits in logits]


def _rationale(document: Document, tokens: list[str], scores: Scores, count: int) -> dict[str, Any]:
    token_rows = owners(document.words, tokens)
    assert token_rows is not None
    chosen_tokens = chosen(scores, count)
    lowest = min(0.0, float(scores.min()))
    soft = [float(scores[rows].max()) if rows else lowest for rows in token_rows]
    hard = np.array([bool(chosen_tokens[rows].any()) for rows in token_rows])
    return {
        "docid": document.docid,
        "hard_rationale_predictions": [
            {"start_token": start, "end_token": end} for start, end in spans(hard)
        ],
        "soft_rationale_predictions": soft,
    }


def _classified(
    classes: list[str], predicted: torch.Tensor, reread: torch.Tensor
) -> dict[str, Any]:
    def named(probabilities: torch.Tensor) -> dict[str, float]:
        return dict(zip(classes, probabilities.tolist(), strict=True))

    def both(place: int) -> dict[str, Any]:
        return {f"{LOSSES[m]}_classification_scores": named(reread[m, place]) for m in range(2)}

    return {
        "classification": classes[int(predicted.argmax())],
        "classification_scores": named(predicted),
        **both(0),
        "thresholded_scores": [
            {"threshold": percent / 100, **both(1 + q)} for q, percent in enumerate(BINS)
        ],
    }
