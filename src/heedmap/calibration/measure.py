"""Ask a plant what the bottom line asks of a model, and keep the numbers of its texts: one table per plant.

Making a plant and asking it takes seconds or minutes, choosing thresholds on these tables next to nothing.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from heedmap.calibration.families import PlantedModel, make
from heedmap.calibration.plants import Plant
from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.rankings import ranked_heats
from heedmap.experiments.methods.rereading import WHAT, outcomes, ranked
from heedmap.experiments.questions.alternatives import READ_OUTS, alternatives
from heedmap.experiments.questions.highlights import outcome_column
from heedmap.experiments.registry import registered
from heedmap.experiments.rule import texts_of
from heedmap.experiments.scales import scale_of
from heedmap.files.tables import read_table, write_table
from heedmap.models.layered import Layered
from heedmap.settings.audit import AuditSettings
from heedmap.terminal.progress import portion

ABOUT = b"plant"  # key of what a table is of, in its metadata
SHUFFLES = 12  # of the weights; the bottom line takes a mean over them
OF_WEIGHTS = ("mean_tvd", "flipped", "uniform_tvd", "uniform_flipped", "moved_tvd", "moved_flipped")
OTHER_MAPS = (
    "shuffled",
    "turned",
)  # of the same weights: among the words at random, or the other way round


@dataclass(frozen=True, eq=False)
class Measured:
    """The numbers of one plant's texts: columns of `highlights`, `alternatives` and `permutation`.

    Of a plant that was not admitted there are none.
    """

    plant: Plant
    admitted: bool
    why_not: str
    texts: pa.Table


def measure(plant: Plant, folder: Path, hosts: Mapping[str, Corpus] | None = None) -> Measured:
    """Make and ask a plant, or read its numbers if they are in the folder."""
    path = _path(plant, folder)
    if (stored := read_measured(path)) is not None and stored.plant == plant:
        return stored
    with portion(0.7):
        planted = make(plant, hosts)
    with portion(0.3):
        texts = _texts(plant, planted) if planted.admitted else pa.table({})
    measured = Measured(plant, planted.admitted, planted.why_not, texts)
    description = {"plant": asdict(plant), "admitted": planted.admitted, "why_not": planted.why_not}
    write_table(path, texts.replace_schema_metadata({ABOUT: json.dumps(description)}))
    return measured


def is_measured(plant: Plant, folder: Path) -> bool:
    """Return whether the numbers of a plant are in the folder."""
    stored = read_measured(_path(plant, folder))
    return stored is not None and stored.plant == plant


def _path(plant: Plant, folder: Path) -> Path:
    return folder / f"{re.sub(r'[^a-z0-9.]+', '-', str(plant).lower())}.parquet"


def _texts(plant: Plant, planted: PlantedModel) -> pa.Table:
    """Return the numbers of the plant's texts, as an audit has them, and those of other maps."""
    settings = AuditSettings(
        seed=plant.seed,
        permutations=SHUFFLES,
        gradient_path="open" if isinstance(planted.model, Layered) else "closed",
    )
    evidence = AuditContext(planted.model, planted.split, settings, registered())
    texts = evidence.table("highlights")
    of_weights = evidence.table("permutation").select(OF_WEIGHTS)
    # What an audit leaves out where the map has a yes is wanted of all plants.
    for part in (alternatives(evidence).drop_columns(["row", "predicted", *READ_OUTS]), of_weights):
        for name in part.column_names:
            texts = texts.append_column(name, part[name])
    for name in ("label", "n_tokens"):
        texts = texts.append_column(name, evidence.table("instances")[name])
    for name, column in _of_other_maps(evidence).items():
        texts = texts.append_column(name, column)
    size = scale_of(evidence.table("instances"), planted.model.classes).size
    for name, values in texts_of({"highlights": texts}, size).items():
        if name in ("predicted", "mean_tvd"):  # as the rule reads them
            place = texts.column_names.index(name)
            texts = texts.set_column(place, name, pa.array(values, texts[name].type))
    return texts


def _of_other_maps(evidence: AuditContext) -> dict[str, pa.Array]:
    """Return the outcomes of maps that are wrong where the real one is right."""
    heats = ranked_heats(evidence)
    rows = np.flatnonzero(evidence.table("highlights")["highlighted"].is_valid().to_numpy())
    rankings = {}
    for row in rows.tolist():
        rng = np.random.default_rng([evidence.settings.seed, *b"other maps", row])
        heat = heats[row]
        turned = np.empty_like(heat)
        turned[np.argsort(heat, kind="stable")] = np.sort(heat)[::-1]
        rankings[row] = {
            "shuffled": ranked(rng.permutation(heat), rng),
            "turned": ranked(turned, rng),
        }
    by_map = outcomes(evidence, rankings)
    return {
        f"{outcome}_{name}": outcome_column(by_map.get(name, {}), outcome).of_rows(0, len(heats))
        for name in OTHER_MAPS
        for outcome in ("highlighted", *WHAT)
    }


def read_measured(path: Path) -> Measured | None:
    """Read the numbers of a plant; None if there are none, or they are damaged."""
    try:
        texts = read_table(path)
        description = json.loads((texts.schema.metadata or {})[ABOUT])
        return Measured(
            Plant(**description["plant"]), description["admitted"], description["why_not"], texts
        )
    except (InputError, OSError, ValueError, TypeError, KeyError):
        return None
