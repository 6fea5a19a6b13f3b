"""The result of the survey: its questions in their order, its figures, and a row per model."""

from dataclasses import replace

import numpy as np
import pandas as pd

from heedmap.papers.kit.result import Result
from heedmap.papers.survey.correlations import correlation_table
from heedmap.papers.survey.figures import figures
from heedmap.papers.survey.fooling import factor_table, fooling_table
from heedmap.papers.survey.likeness import likeness_claim, likeness_table
from heedmap.papers.survey.stability import stability_claim, stability_table
from heedmap.papers.survey.survey import Survey, cost, freedom
from heedmap.papers.survey.uniform_cost import cost_table, need_claims

LEAD = "Four questions that the survey left open, asked of each model. No number is published."
COLUMNS = {
    "model": "data set, encoder, normaliser and size; or sequences",
    "task": "kind of task",
    "learned": "whether the training has learned; empty where it cannot be told",
    "accuracy": "share of the test texts, or target sub-words, that are right",
    "chance": "share of the commonest answer",
    "cost": "accuracy lost by training with uniform weights, mean over seeds",
    "cost_at_test": "accuracy lost by uniform weights at test only",
    "instability": "JSD of other seeds' maps over that of shuffled weights",
    "cosine": "mean cosine of the states of a text",
    "conicity": "mean cosine of the states of a text with their mean",
    "flip_top": "share of the decisions that erasing the most attended word changes",
    "freedom": "adversary's JSD / ln 2, mean over the texts searched",
    "length": "mean number of tokens of a text",
}


def result(survey: Survey) -> Result:
    """Make the result that all files show."""
    made = survey.make_result(
        "The survey's open questions",
        [
            cost_table(survey),
            *need_claims(survey.needs, survey.learned),
            stability_table(survey),
            stability_claim(survey),
            likeness_table(survey),
            likeness_claim(survey),
            correlation_table(survey),
            fooling_table(survey),
            factor_table(survey),
        ],
        figures=figures(survey),
        rows=pd.DataFrame(_csv_rows(survey), columns=[*COLUMNS]),
        columns=COLUMNS,
    )
    return replace(made, lead=LEAD)


def _csv_rows(survey: Survey) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for model in survey.texts:
        row: dict[str, object] = {
            "model": model.name,
            "task": model.task,
            "learned": model.name not in survey.learned.failed,
            "accuracy": float(model.is_right.mean()),
            "chance": model.commonest,
            "cosine": model.mean("cosine_states"),
            "conicity": model.mean("conicity_states"),
            "flip_top": model.mean("flip_top"),
            "freedom": freedom(model),
            "length": model.mean("n_tokens"),
        }
        if model["retrained"]:
            row |= {
                "cost": cost(model),
                "cost_at_test": float(model.cost_at_test.mean()),
                "instability": model.instability,
            }
        found.append(row)
    texts = {model.name for model in survey.texts}
    for need in survey.needs:
        if need.name not in texts:
            found.append({
                "model": need.name, "task": need.task, "accuracy": float(np.mean(need.learned)),
                "learned": need.name not in survey.learned.failed, "chance": need.chance,
                "cost": need.cost, "cost_at_test": need.at_test[0],
            })  # fmt: skip
    return found
