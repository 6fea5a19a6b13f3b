"""What one text's answer rests on, and how far its heat map says so: the result of `heedmap.explain`."""

import io
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.methods.flip_sets import FlipSet
from heedmap.files.storage import write_atomically
from heedmap.terminal.output import show

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

Floats = NDArray[np.float64]
MOST_ATTENDED = 3
TEXT_WIDTH = 100  # columns as a string
PER_TOKEN = ("attention", "gradient", "leave_one_out", "signed", "read_out", "read_out_attention")
SAME = 1e-6  # of a weight: less is rounding


@dataclass(frozen=True)
class Adversary:
    """The most different `weights` found that leave the answer within ε.

    `jsd` is their distance from the model's own, `jsd_upper` what none exceeds; if `exact`, both are the global
    optimum.
    """

    weights: Floats
    jsd: float
    jsd_upper: float
    exact: bool


@dataclass(frozen=True)
class Window:
    """The numbers of a text, or of one window of a text that is longer than the model reads.

    All but the last four have one value per token (per class: `probabilities`), as in the audit's tables.
    `signed` is what the answer loses without the token. `read_out` is what its state says for the answer,
    `read_out_attention` the same times its weight (the gradient of the log-odds by the weight). `found` is the
    share of leave-one-out under the map, `largest` that of the same weights in the best order. `adversary` is
    None where it is not asked. `flip` is the smallest set of tokens that flips the answer when their weight is
    erased, None if there is none; `smallest` says whether that is exact or the best of some rankings.
    `flip_along_map` is how many tokens it takes in the map's order, 0 for never.
    """

    tokens: list[str]
    unknown: NDArray[np.bool_]
    probabilities: Floats
    attention: Floats
    gradient: Floats
    leave_one_out: Floats
    signed: Floats
    read_out: Floats
    read_out_attention: Floats
    found: float
    largest: float
    adversary: Adversary | None
    flip: FlipSet | None
    smallest: bool
    flip_along_map: int

    def most_attended(self) -> list[int]:
        """Return the places of the most attended tokens, the first first: up to three, without ties."""
        order = np.argsort(-self.attention, kind="stable")
        weights = self.attention[order]
        for count in range(min(MOST_ATTENDED, len(order) - 1), 0, -1):
            if weights[count - 1] - weights[count] > SAME * weights[count - 1]:
                return [int(place) for place in order[:count]]
        return []


@dataclass(frozen=True, repr=False)
class Explanation:
    """One text: the model's answer, its heat map, and what the audit asks of the two.

    `name` is the run's or the model's, `model` describes it, with the map on trial. `unit` is what a token is.
    `epsilon` is the change (TVD) within which an answer counts as the same. `notes` say what was cut, merged or
    not known. There is one of `windows`, unless the text is longer than the model reads.
    """

    name: str
    model: str
    classes: list[str]
    text: str
    query: list[str] | None
    unit: str
    epsilon: float
    notes: list[str]
    windows: list[Window]

    @property
    def probabilities(self) -> Floats:
        """The predicted probability of each class, the mean over the windows."""
        mean: Floats = np.stack([window.probabilities for window in self.windows]).mean(0)
        return mean

    @property
    def answer(self) -> str:
        """The predicted class."""
        return self.classes[int(self.probabilities.argmax())]

    @property
    def tokens(self) -> list[str]:
        """The tokens of all windows."""
        return [token for window in self.windows for token in window.tokens]

    @property
    def attention(self) -> Floats:
        """The weights of the heat map on trial, one per token; each window's add up by themselves."""
        return np.concatenate([window.attention for window in self.windows])

    def __repr__(self) -> str:
        size = len(self.tokens)
        text = f"{self.text[:60]}…" if len(self.text) > 60 else self.text
        share = self.probabilities.max()
        return f"<Explanation of {text!r}: {self.answer} ({share:.3f}), {size} {self.unit}s>"

    def __str__(self) -> str:
        from rich.console import Console

        file = io.StringIO()
        Console(file=file, width=TEXT_WIDTH, color_system=None).print(self)
        return file.getvalue().rstrip("\n")

    def __rich__(self) -> "RenderableType":
        from heedmap.report.explanation_views import terminal

        return terminal(self)

    def _repr_html_(self) -> str:
        from heedmap.report.explanation_views import fragment

        return fragment(self)

    def show(self) -> None:
        """Print it."""
        show(self.__rich__())

    def save(self, path: str | Path) -> Path:
        """Write it as a page of its own (.html); returns the path.

        Raises:
            InputError: the place cannot be written.
        """
        from heedmap.report.explanation_views import page

        write_atomically(Path(path), page(self))
        return Path(path)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return the numbers per token, one row each; `window` counts from 0."""
        import pandas as pd

        frames = []
        for number, one in enumerate(self.windows):
            erased = np.zeros(len(one.tokens), dtype=bool)
            erased[one.flip.words if one.flip else []] = True
            columns: dict[str, Any] = {
                "window": number,
                "token": one.tokens,
                "unknown": one.unknown,
            }
            for name in PER_TOKEN:
                columns[name] = getattr(one, name)
            columns["adversary"] = np.nan if one.adversary is None else one.adversary.weights
            frames.append(pd.DataFrame({**columns, "flips": erased}))
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; what is undefined is None.

        `name`, `model`, `text`, `query` (tokens, or None), `classes`, `epsilon`, `notes` are as the attributes;
        `answer` is the predicted class, `probabilities` are in the order of the classes. Each of `windows` has

        * `tokens`, and in their order `unknown`, `attention`, `gradient`, `leave_one_out`, `signed`,
          `read_out`, `read_out_attention`;
        * its own `probabilities`, and `found` and `largest`;
        * `adversary`: `weights`, `jsd`, `jsd_upper`, `exact`; or None;
        * `flip`: `tokens` (their places, from 0), `mass` (the attention on them), `answer`, `probability` and
          `ranking` ("exact", or whose first tokens they are); or None where nothing flips;
        * `smallest`: whether `flip` is exact, and None a proof; and `flip_along_map`.
        """
        return {
            "name": self.name,
            "model": self.model,
            "text": self.text,
            "query": self.query,
            "classes": self.classes,
            "epsilon": self.epsilon,
            "answer": self.answer,
            "probabilities": _numbers(self.probabilities),
            "notes": self.notes,
            "windows": [self._window(one) for one in self.windows],
        }

    def _window(self, one: Window) -> dict[str, Any]:
        flip, adversary = one.flip, one.adversary
        values = {
            name: _numbers(value) if isinstance(value, np.ndarray) else value
            for name, value in vars(one).items()
        }
        values |= {"unknown": one.unknown.tolist()}
        values |= {"found": _number(one.found), "largest": _number(one.largest)}
        values["adversary"] = adversary and {
            **asdict(adversary),
            "weights": _numbers(adversary.weights),
        }
        values["flip"] = flip and {
            "tokens": flip.words,
            "mass": flip.mass,
            "answer": self.classes[flip.predicted],
            "probability": flip.probability,
            "ranking": flip.ranking,
        }
        return values


class Explanations(list[Explanation]):
    """Explanations of many texts, in their order: a list that shows itself and becomes one table."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "<hr>".join(each._repr_html_() for each in self)

    def show(self) -> None:
        """Print them."""
        for each in self:
            each.show()

    def to_dataframe(self) -> "pd.DataFrame":
        """Return the numbers per token of all texts (see `Explanation.to_dataframe`).

        Three columns come first: `text` counts the texts from 0, `answer` is the predicted class, `probability`
        that of it.
        """
        import pandas as pd

        frames = []
        for place, each in enumerate(self):
            frame = each.to_dataframe()
            for column, value in (
                ("probability", float(each.probabilities.max())),
                ("answer", each.answer),
                ("text", place),
            ):
                frame.insert(0, column, value)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
