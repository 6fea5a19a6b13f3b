"""The rows of a reproduction, by transformer; which classifiers have learned, and the claims."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from heedmap.papers.drozdyuk.claims import ACTIVATIONS, claims, learned
from heedmap.papers.drozdyuk.focus_claims import focus_claims
from heedmap.papers.drozdyuk.published import GIVEN
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, changed_settings
from heedmap.report.activation_figures import COMPUTED
from heedmap.report.charts import Figure


@dataclass(frozen=True)
class Drozdyuk(CellReproduction[DrozdyukSettings]):
    """The rows of all interventions so far."""

    @property
    def missing(self) -> int:
        """The number of cells that are still to be run: one per seed, transformer and activation."""
        settings = self.settings
        finished = {(row["model"], row["activation"], row["seed"]) for row in self.rows}
        cells = settings.seeds * len(settings.transformers) * len(settings.activations)
        return cells - len(finished)

    @property
    def papers_data(self) -> bool:
        """Whether the texts are like the paper's, so that its numbers may stand beside ours."""
        return self.settings.dataset is not None

    @property
    def differences(self) -> list[str]:
        """How it differs from the settings that the paper gives."""
        trained = ["a classifier that was trained before"] if self.settings.model else []
        words = {name: f"{noun} {{}}" for name, (noun, _) in GIVEN.items()}
        published = {name: value for name, (_, value) in GIVEN.items()}
        texts = [] if self.papers_data else ["other texts, so that no published number is compared"]
        return [*trained, *texts, *changed_settings(self.settings, words, published)]

    @cached_property
    def by_transformer(self) -> dict[str, "Drozdyuk"]:
        """The part of each transformer that has rows, by its size; the whole by no size if there is one."""
        sizes = self.settings.transformers
        parts = {
            size: replace(
                self,
                name=of_size(self.name, size),
                settings=self.settings.model_copy(update={"transformers": (size,)}),
                rows=[row for row in self.rows if row["model"] == size],
            )
            for size in sizes
        }
        if len(sizes) == 1 or not self.rows:
            return {"": self}
        return {size: part for size, part in parts.items() if part.rows}

    @cached_property
    def learned(self) -> Learned:
        """Which classifiers have learned, by their activation, and by their size if there are two."""
        if "" in self.by_transformer:
            return learned(self.rows, papers_data=self.papers_data)
        return Learned(
            {
                f"{size} {activation}": trainings
                for size, part in self.by_transformer.items()
                for activation, trainings in part.learned.models.items()
            }
        )

    def failed_in(self, figure: Figure) -> list[str]:
        """Return the models in a figure that have not learned: those of its size, and none of a formula."""
        if figure.n == COMPUTED:
            return []
        sizes = [size for size in self.by_transformer if figure.key.endswith(f"-{size}")]
        failed = self.by_transformer[sizes[0]].learned.failed if sizes else self.learned.failed
        return [*failed]

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's claims: two of Table 1, which need both activations, and those of its pictures."""
        if "" in self.by_transformer:
            judged = claims(self.rows, papers_data=self.papers_data)
            table = [self.learned.judged(claim, *ACTIVATIONS) for claim in judged]
            return [*table, *focus_claims(self.rows, self.learned)]
        return [
            replace(claim, text=of_size(claim.text, size))
            for size, part in self.by_transformer.items()
            for claim in part.claims
        ]


def activations_of(rows: Sequence[Row]) -> list[str]:
    """Return the activations in the order in which they were run."""
    return list(dict.fromkeys(row["activation"] for row in rows))


def of_size(text: str, size: str) -> str:
    """Return a text with the size of the transformer that it is about, if there are two.

    >>> of_size("Every intervention", "larger"), of_size("Every intervention", "")
    ('Every intervention, larger transformer', 'Every intervention')
    """
    return f"{text}, {size} transformer" if size else text
