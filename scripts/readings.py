"""The readings at the end of the pages of docs/questions: python scripts/readings.py FOLDER

FOLDER has the runs that the commands below make, by their names; the pages of runs that it lacks stay as they
are. Of a question the first finding is shown as on the card, or what an expression makes of the audit.
"""

import sys
import textwrap
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pandas as pd
from rich.console import Console

import heedmap as hm
from heedmap.experiments import summaries
from heedmap.experiments.registry import Experiment, registered
from heedmap.experiments.results import Results
from heedmap.report.card import card

HEAD = "## A reading"
PAGES = Path(__file__).parents[1] / "docs" / "questions"
COMMANDS = {
    "demo": ["heedmap audit --data reviews --record-dynamics --out runs/demo"],
    "sst2": ["heedmap audit --model minilm-sst2 --data SST --instances 200 --out runs/sst2"],
    "dot": ["heedmap audit --data reviews --score dot --out runs/dot"],
    "s0": [
        "heedmap train --data reviews --encoder average --epochs 2 --seed 0 --out runs/s0   # and 1, 2",
        "heedmap audit --run runs/s0 --instances 60 --other-seed runs/s1 --other-seed runs/s2",
    ],
    "further": [
        "heedmap train --data reviews --encoder average --epochs 3 --out runs/further",
        "heedmap retrain --run runs/further --seeds 3 --lambdas 0.001,0.01,0.1 --adversary-epochs 10",
    ],
    "gender": [
        "heedmap audit --data biographies-gender --out runs/gender",
        "heedmap retrain deception --run runs/gender --seeds 3 \\\n"
        "    --forbidden he,she,his,her,him,hers,himself,herself",
    ],
}
OF_TRANSFORMERS = ("scan", "head_mixture", "better_maps", "heads")
OF_ONE_QUESTION = {"deception": "gender", "alternatives": "dot", "trainings": "s0"}
WIDTH = 84  # columns of a sentence
EXPRESSIONS = {  # statements, and the frame, or the sentence, that is shown
    "importance": (
        'sampled = audit["integrated_gradients"]["importance"].dropna().index\n'
        'row = audit["instances"].loc[sampled, "n_tokens"].idxmin()\n'
        'names = ("gradient", "leave_one_out", "integrated_gradients")\n'
        'measures = {name: audit[name]["importance"][row] for name in names}\n'
        'words = {key: audit["instances"][key][row] for key in ("tokens", "attention")}\n',
        "pd.DataFrame(words | measures).round(2)",
    ),
    "alternatives": ("", 'audit["alternatives"].filter(regex="^(gone|alone)_").mean().round(2)'),
    "trainings": ("", "audit.bottom_line.trainings"),
    "baselines": ("", 'audit["baselines"].drop(columns="row").mean().round(2)'),
    "head_mixture": (
        'heads = audit["head_mixture"].query("row == row.min() and mixed > 0")\n',
        'heads[["layer", "head", "mixed"]].nlargest(5, "mixed").astype({"head": int}).round(2)',
    ),
    "dynamics": (
        'match = ["match_attention", "match_relevance", "match_influence", "chance_attention"]\n',
        'audit["dynamics"].groupby("step", as_index=False)[match].mean().round(2)[::3]',
    ),
}


def run_of(question: str) -> str:
    """Return the name of the run that a question is shown of."""
    if question in OF_ONE_QUESTION:
        return OF_ONE_QUESTION[question]
    if question in summaries(retraining=True):
        return "further"
    return "sst2" if question in OF_TRANSFORMERS else "demo"


def reading(question: str, audit: hm.Audit) -> str:
    """Return the end of a question's page."""
    commands = "".join(f"$ {command}\n" for command in COMMANDS[run_of(question)])
    text = f"{HEAD}\n\n```console\n{commands}```\n\n"
    if question in EXPRESSIONS:
        statements, expression = EXPRESSIONS[question]
        names = {"audit": audit, "pd": pd}
        exec(statements, names)
        value = eval(expression, names)
        frame = isinstance(value, pd.DataFrame)
        lines = (
            textwrap.wrap(value, WIDTH)
            if isinstance(value, str)
            else value.to_string(**({"index": False} if frame else {})).splitlines()
        )
        output = "\n".join(line.rstrip() for line in lines)
        return f"{text}```python\n{statements}{expression}\n```\n\n```text\n{output}\n```\n"
    return f"{text}```text\n{shown(registered()[question], audit)}\n```\n"


def shown(experiment: Experiment, audit: hm.Audit) -> str:
    """Return the first finding of a question as the card has it."""
    results = Results(
        audit.tables, audit.settings.audit, audit.classes, audit.settings.model, audit.rates
    )
    key = experiment.findings(results)[0].key
    (finding,) = (one for one in audit.findings if one.key == key)
    console = Console(file=StringIO(), width=88, no_color=True)
    console.print(card(replace(audit, findings=[finding])))
    lines = [line[2:-2].rstrip() for line in console.file.getvalue().splitlines()[:-1]]
    start = max(i for i, line in enumerate(lines) if "──────" in line) + 1
    return "\n".join(lines[start:])


def main() -> None:
    """Write the ends of all pages."""
    audits = {
        name: hm.open_audit(folder)
        for name in COMMANDS
        if (folder := Path(sys.argv[1], name)).exists()
    }
    for question in (*summaries(), *summaries(retraining=True)):
        if run_of(question) not in audits:
            continue
        page = PAGES / f"{question}.md"
        text = page.read_text(encoding="utf-8").split(HEAD)[0].rstrip()
        end = reading(question, audits[run_of(question)])
        page.write_text(f"{text}\n\n{end}", encoding="utf-8")


if __name__ == "__main__":
    main()
