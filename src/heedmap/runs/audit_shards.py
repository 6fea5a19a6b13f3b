"""Divide an audit of many texts among shards: each asks the questions of some chunks of the texts."""

from collections.abc import Mapping
from typing import Any

from heedmap.experiments.chunks import ChunkedContext
from heedmap.files.locking import writing
from heedmap.runs.audit_folder import claim_audit
from heedmap.runs.evidence import evidence_for, settings_for
from heedmap.runs.folder import RunFolder
from heedmap.runs.run import Run
from heedmap.runs.stored_models import weights_of
from heedmap.terminal.progress import log_line, note, track
from heedmap.training.shards import Shard, current_shard, end_part, require_finished, run_apart


def audit_part(run: Run, options: Mapping[str, Any]) -> None:
    """Ask a shard's part of an audit's texts, if this command is a shard (`heedmap.training.shards`).

    In a command that gathers what shards have made, check that none of them is missing. An audit that does not
    ask in chunks has no parts: then nothing happens.

    Raises:
        ShardEnd: the part is finished.
        MissingJobs: a part is not finished, where the shards' work is gathered.
        InputError: the audit draws its texts, or the folder holds another one.
    """
    audit_settings = settings_for(run, options)
    audit_settings.refuse_drawn("--shard")
    assert run.folder is not None
    settings = run.settings.model_copy(update={"audit": audit_settings})
    folder, weights = RunFolder(run.folder), weights_of(run.model, run.settings)
    with writing(folder.path):
        tables = claim_audit(folder, settings, weights, run.model.classes, overwrite=False)
        evidence = evidence_for(run, audit_settings, tables)
        if not isinstance(evidence, ChunkedContext):
            if (shard := current_shard()) is not None:
                note(
                    f"{shard}: so few texts have no parts, so that this shard asks about all of them"
                )
            return
        if (shard := current_shard()) is not None:
            _ask_part(evidence, shard)
        unfinished = {*evidence.unfinished()}
        require_finished(evidence.chunks, lambda chunk: chunk not in unfinished)


def _ask_part(evidence: ChunkedContext, shard: Shard) -> None:
    assert evidence.folder is not None
    evidence.folder.claim()  # the next shard finds the tables known, and removes none
    if unfinished := {*evidence.unfinished()}:
        evidence.prepare()
    part = [chunk for chunk in shard.part(evidence.chunks) if chunk in unfinished]
    shard.setup.close()
    for chunk in track(part, [float(chunk.size) for chunk in part]):
        run_apart(chunk, run=evidence.ask, folder=shard.folder)
        log_line(str(chunk))
    unfinished = {*evidence.unfinished()}
    end_part(shard, evidence.chunks, lambda chunk: chunk not in unfinished)
