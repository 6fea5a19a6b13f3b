"""Train variants in worker processes, each resumable by itself, and read their outcomes."""

from collections.abc import Iterator, Sequence
from functools import partial

from heedmap.data.marks import marked_words
from heedmap.experiments.variants import Heads, Outcome, Variant
from heedmap.files.manifest import remove
from heedmap.models.trace import Model
from heedmap.retraining import own
from heedmap.retraining.base import Base, Prepared
from heedmap.settings.retraining import RetrainSettings
from heedmap.settings.training import TrainSettings
from heedmap.terminal.progress import track
from heedmap.training.fit import fit
from heedmap.training.jobs import checkpoints_of, run_jobs

HEADS: dict[str, tuple[Heads, ...]] = {
    "mean": ("mean",),
    "max": ("max",),
    "both": ("mean", "max"),
}


class Trainer:
    """Implements `heedmap.experiments.variants.Retraining` for a run that heedmap trained or fine-tuned."""

    def __init__(
        self,
        base: Base,
        settings: RetrainSettings,
        workers: int | None = None,
    ) -> None:
        assert base.settings.train is not None
        self.base, self.settings, self.seed = base, settings, base.settings.train.seed
        named = settings.forbidden
        self.words = () if named is None else marked_words(named, base.corpus)
        of_words = isinstance(base.settings.train, TrainSettings)  # one head
        self.heads = HEADS["mean" if of_words else settings.heads]
        self._workers = workers
        self._planned: list[Variant] = []

    def plan(self, variants: Sequence[Variant]) -> list[list[Variant]]:
        """Train these together, once the first outcome is asked for; return what is missing, in rounds."""
        self._planned = [self.base.plain(variant) for variant in variants]
        missing = [
            [variant for variant in variants_of_round if not self.base.is_finished(variant)]
            for variants_of_round in rounds(self._planned)
        ]
        return [variants_of_round for variants_of_round in missing if variants_of_round]

    def outcomes(self, variants: Sequence[Variant]) -> list[Outcome]:
        """Train what is not trained yet, and return the outcomes in the order of the variants."""
        plain_variants = [self.base.plain(variant) for variant in variants]
        all_rounds = rounds([*self._planned, *plain_variants])
        unfinished = [
            variants_of_round
            for variants_of_round in all_rounds
            if not all(map(self.base.is_finished, variants_of_round))
        ]
        for number, variants_of_round in enumerate(track(unfinished), 1):
            run_jobs(
                variants_of_round,
                partial(train_variant, base=self.base),
                lambda variant, _: None,
                folder=self.base.folder,
                is_finished=self.base.is_finished,
                workers=self._workers,
                more=number < len(unfinished),
            )
        for (
            variant
        ) in plain_variants:  # of an earlier call, too, that was killed before it removed them
            if (checkpoints := checkpoints_of(self.base.path(variant))).is_dir():
                remove(checkpoints)
        return [self.base.outcome(variant) for variant in plain_variants]

    def model(self, variant: Variant) -> Model:
        """Return a trained variant of a model of ours; it is trained first if need be."""
        self.outcomes([variant])
        return own.trained_model(self.base.plain(variant), self.base)


def rounds(variants: Sequence[Variant]) -> list[list[Variant]]:
    """Return the variants and all that they need, each once, in rounds that need only earlier ones."""

    def depth(variant: Variant) -> int:
        return 1 + max(map(depth, variant.needs()), default=-1)

    def closure(variant: Variant) -> Iterator[Variant]:
        for needed in variant.needs():
            yield from closure(needed)
        yield variant

    distinct = dict.fromkeys(needed for variant in variants for needed in closure(variant))
    sorted_rounds: list[list[Variant]] = [
        [] for _ in range(max(map(depth, distinct), default=-1) + 1)
    ]
    for variant in distinct:
        sorted_rounds[depth(variant)].append(variant)
    return sorted_rounds


def train_variant(variant: Variant, *, base: Base) -> None:
    """Train one variant and keep its outcome, unless it is there."""
    path = base.path(variant)
    if not path.exists():
        prepared = prepare(variant, base)
        checkpoint = checkpoints_of(path) / "model.safetensors"
        trained = fit(prepared.objective, checkpoint)
        base.keep(variant, trained, prepared)
    remove(checkpoints_of(path))


def prepare(variant: Variant, base: Base) -> Prepared:
    """Return a variant's training, from scratch as the run's or fine-tuned as it was."""
    if isinstance(base.settings.train, TrainSettings):
        return own.prepare(variant, base)
    from heedmap.retraining import restricted  # transformers takes seconds to load

    return restricted.prepare(variant, base)
