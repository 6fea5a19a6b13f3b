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
from heedmap.experiments.eraser import counts_of, kept_by
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.rankings import RANKINGS, Scores, scores_of
from heedmap.files.identity import identity
from heedmap.files.storage import write_atomically
from heedmap.files.table_folder import TableFolder
from heedmap.importance.deletions import reread_kept
from heedmap.importance.plausibility import chosen, spans
from heedmap.runs.audit import audited_split, open_audit
from heedmap.runs.folder import RunFolder
from heedmap.runs.open import open_run, weights_of

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
    wanted = audit.settings.audit
    assert wanted is not None
    split = audited_split(run, wanted)
    if split.rationale is None:
        raise without_rationales(run.settings.data.source)
    if split.text_of is not None:
        raise InputError(
            f"{folder}: expected whole texts, got windows; audit with --long-texts cut"
        )
    if "plausibility" not in audit.tables:
        raise InputError(
            f"{folder}: audited by an older version, which did not compare with people; run "
            f"`heedmap audit --run {folder}` again"
        )
    whole = documents(run.settings.data, run.corpus.in_memory)
    kept = TableFolder(
        RunFolder(folder).tables, identity(audit.settings, weights_of(run), run.model.classes)
    )
    evidence = Evidence(run.model, split, wanted, kept)
    counts = audit.tables["plausibility"]["count"].to_pylist()
    notes: Counter[str] = Counter()
    lines: dict[int, str] = {}
    found = scores_of(evidence, evidence.traces)
    for batch, trace in evidence.passes():
        asked = []
        for i, row in enumerate(batch.rows.tolist()):
            size, scores = len(evidence.texts[row]), found[row].get(ranking)
            if scores is None:
                notes[f"left out: no {RANKINGS[ranking]}: undefined, or not sampled"] += 1
            elif counts[row] >= size:
                notes["left out: nothing would be left without the rationale"] += 1
            elif owners(whole[split.keys[row]].words, split.tokens[row]) is None:
                notes["left out: tokens that are not the document's words"] += 1
            else:
                asked.append((i, row, scores))
        read = _read_again(evidence, [(evidence.texts[row], s, counts[row]) for _, row, s in asked])
        for (i, row, scores), after in zip(asked, read, strict=True):
            key = split.keys[row]
            before = trace.logits[i].double().softmax(-1)
            line = {
                "annotation_id": key,
                "rationales": [_rationale(whole[key], split.tokens[row], scores, counts[row])],
                **_classified(run.model.classes, before, after),
            }
            same = whole[key].words == [token.strip() for token in split.tokens[row]]
            notes[OTHER_TOKENS] += not same
            lines[row] = json.dumps(line, ensure_ascii=False) + "\n"
    write_atomically(path, "".join(lines[row] for row in sorted(lines)))
    return whole, len(lines), dict(+notes)


def _read_again(evidence: Evidence, texts: list[tuple[Text, Scores, int]]) -> list[torch.Tensor]:
    """Return the probabilities (2, 1 + Q, C) without a ranking's first words, and with these alone."""
    masks = [kept_by(scores, [count, *counts_of(len(text))]) for text, scores, count in texts]
    logits = reread_kept(evidence.model, [text for text, _, _ in texts], masks)
    return [each.softmax(-1).reshape(2, 1 + len(BINS), -1) for each in logits]


def _rationale(document: Document, tokens: list[str], scores: Scores, count: int) -> dict[str, Any]:
    own = owners(document.words, tokens)
    assert own is not None
    first = chosen(scores, count)
    lowest = min(0.0, float(scores.min()))
    soft = [float(scores[at].max()) if at else lowest for at in own]
    hard = np.array([bool(first[at].any()) for at in own])
    return {
        "docid": document.docid,
        "hard_rationale_predictions": [
            {"start_token": start, "end_token": end} for start, end in spans(hard)
        ],
        "soft_rationale_predictions": soft,
    }


def _classified(classes: list[str], before: torch.Tensor, after: torch.Tensor) -> dict[str, Any]:
    def named(probabilities: torch.Tensor) -> dict[str, float]:
        return dict(zip(classes, probabilities.tolist(), strict=True))

    def both(place: int) -> dict[str, Any]:
        return {f"{LOSSES[m]}_classification_scores": named(after[m, place]) for m in range(2)}

    return {
        "classification": classes[int(before.argmax())],
        "classification_scores": named(before),
        **both(0),
        "thresholded_scores": [
            {"threshold": percent / 100, **both(1 + q)} for q, percent in enumerate(BINS)
        ],
    }
