"""The cells of the survey: which models are trained on which data."""

from heedmap.papers.kit.reproduction import Cell
from heedmap.papers.survey.settings import SEQUENCES, SurveySettings

TRANSLATION = "translation"


def cells(settings: SurveySettings) -> list[Cell]:
    """Return the cells: sequences, which are quick, then one data set after the other."""
    kinds = [("softmax", size) for size in settings.sizes if "softmax" in settings.normalisers]
    kinds += [(name, settings.sizes[0]) for name in settings.normalisers if name != "softmax"]
    texts = [
        Cell(
            f"{name}-{encoder}-{normaliser}-{size}".replace("/", "-"),
            {
                "data": name, "encoder": encoder, "normaliser": normaliser, "size": size,
                "retrained": (normaliser, size) == ("softmax", settings.sizes[0]),
            },
        )
        for name in settings.names
        for normaliser, size in kinds
        for encoder in settings.encoders
    ]  # fmt: skip
    tasks = [*SEQUENCES, *([TRANSLATION] if settings.pairs else [])]
    sequences = [
        Cell(f"{task}-{attention}-{seed}", {"data": task, "attention": attention, "seed": seed})
        for task in tasks
        for seed in range(settings.seed, settings.seed + settings.seeds)
        for attention in ("learned", "uniform")
    ]
    return [*sequences, *texts]
