"""For which tasks is attention needed, and what does uniform attention cost?"""

import math
from collections.abc import Sequence

from heedmap.experiments.seed_intervals import bounded_interval, level_of
from heedmap.experiments.seeds import over_seeds
from heedmap.papers.kit.claims import Check, apart, judged
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.result import Claim, Estimate, Table
from heedmap.papers.survey.formats import points
from heedmap.papers.survey.needs import Need
from heedmap.papers.survey.survey import Survey

NEED_HOW = """Accuracy on the test texts (of sequences: of the next sub-word, given the right ones \
before it), mean and 95 % interval over seeds. Lost: points, learned less uniform of the same \
seeds; at test only: the trained model under uniform weights, its interval over texts, of \
sequences over seeds. Chance: the commonest answer."""
OVER_SEEDS = (
    "By Student's intervals over seeds, one per model, which together hold at 95 % (Bonferroni)."
)


def cost_table(survey: Survey) -> Table:
    """Return the accuracies with attention and without, and what is lost."""
    return Table.of(
        "For which tasks is attention needed, and what does uniform attention cost?",
        survey.needs,
        {
            "task": lambda need: need.task,
            "model": lambda need: survey.learned.marked(need.name, need.name),
            "learned": lambda need: over_seeds(need.learned),
            "trained uniform": lambda need: over_seeds(need.uniform),
            "lost": lambda need: points(need.cost, *bounded_interval(need.costs)),
            "lost at test only": lambda need: points(*need.at_test),
            "chance": lambda need: f"{need.chance:.3f}",
            "trainings": lambda need: f"{len(need.learned)} each",
            "instances": lambda need: need.instances,
        },
        NEED_HOW,
        labels=2,
    )


def need_claims(needs: Sequence[Need], learned: Learned) -> list[Claim]:
    """Judge for each kind of task that every model of it loses accuracy with uniform weights."""
    claims = []
    for task in dict.fromkeys(need.task for need in needs):
        of_task = [need for need in needs if need.task == task]
        level = level_of(len(of_task))
        checks = []
        for need in of_task:
            low, high = bounded_interval(need.costs, level)
            estimate = Estimate(need.name, need.cost, low, high)
            line = f"{need.name}: no interval of one training" if math.isnan(low) else estimate.text
            checks.append(Check(line, apart((low, high)), (need.name,), estimate))
        text = f"Attention is needed for {task}: every model loses accuracy if trained with uniform weights"
        claims.append(judged(text, checks, learned, basis=OVER_SEEDS))
    return claims
