"""What one text's answer rests on, and how far its heat map shows it: the result of `heedmap.explain`."""

import io
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from rich.console import Console, Group, RenderableType
from rich.text import Text

from heedmap.files.storage import write_atomically
from heedmap.nouns import TEXTS, Nouns
from heedmap.report.explained_window import Floats, Window
from heedmap.report.inline_styles import InlineStyles, style_attribute
from heedmap.report.picture_maps import over_picture
from heedmap.report.templates import environment
from heedmap.report.window_views import (
    marked_text,
    prediction_text,
    sentences,
    shaded_rows,
    token_table,
)
from heedmap.terminal.output import cell, show

if TYPE_CHECKING:
    import pandas as pd

NAMED = 8  # classes that are named; of more, the likeliest
TEXT_WIDTH = 100  # columns as a string
OF_CLASSES = (
    "adversary",
    "flip",
    "smallest",
    "flip_along_map",
)  # of a window, where classes are decided
PER_TOKEN = ("attention", "gradient", "leave_one_out", "signed", "read_out", "read_out_attention")


@dataclass(frozen=True, repr=False)
class Explanation:
    """One text: the model's answer, its heat map, and what the audit asks of the two.

    `name` is that of the run or the model, `model` describes it and its map on trial. `unit` is what a token
    is. `epsilon` is the change (TVD) within which an answer counts as the same. `notes` say what was cut,
    merged or unknown. There is one window, unless the text is longer than the model reads. `nouns` are what the
    text and its words are called.
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
    nouns: Nouns = TEXTS

    @property
    def probabilities(self) -> Floats:
        """The predicted probability of each class, the mean over the windows."""
        mean: Floats = np.stack([window.probabilities for window in self.windows]).mean(0)
        return mean

    @property
    def is_number(self) -> bool:
        """Whether the model gives a number, which is the only one of the `probabilities`."""
        return len(self.classes) == 1

    @property
    def answer(self) -> str:
        """The predicted class; of a model that gives a number, this and its unit."""
        if self.is_number:
            return " ".join(self._likeliest()[0])
        return self.classes[int(self.probabilities.argmax())]

    @property
    def tokens(self) -> list[str]:
        """The tokens of all windows."""
        return [token for window in self.windows for token in window.tokens]

    @property
    def attention(self) -> Floats:
        """The weights of the heat map on trial, one per token; those of each window add up to 1."""
        return np.concatenate([window.attention for window in self.windows])

    def __repr__(self) -> str:
        size = len(self.tokens)
        text = f"{self.text[:60]}…" if len(self.text) > 60 else self.text
        share, units = self.probabilities.max(), self.nouns.reword(f"{self.unit}s")
        sure = "" if self.is_number else f" ({share:.3f})"
        return f"<Explanation of {text!r}: {self.answer}{sure}, {size} {units}>"

    def __str__(self) -> str:
        file = io.StringIO()
        Console(file=file, width=TEXT_WIDTH, color_system=None).print(self)
        return file.getvalue().rstrip("\n")

    def __rich__(self) -> RenderableType:
        """Render it for the terminal; bars, brackets and signs say what the colours say."""
        answer, *alternatives = self._likeliest()
        parts: list[RenderableType] = [
            cell(f"{self.name}: {self.model}", style="dim"),
            Text.assemble(
                "predicted ",
                cell(" ".join(answer), style="bold"),
                *(cell(f", {name} {probability}") for name, probability in alternatives),
            ),
        ]
        if self.query is not None:
            parts.append(Text.assemble(("query     ", "dim"), cell(" ".join(self.query))))
        parts += [cell(f"note: {note}", style="yellow") for note in self.notes]
        for count, window in enumerate(self.windows, 1):
            if len(self.windows) > 1:
                title = f"Window {count} of {len(self.windows)}: {self._predicted(window)}"
                parts.append(cell(title, style="bold"))
            parts += ["", marked_text(window), "", token_table(window, self.unit, self.nouns), ""]
            parts += [cell(f"● {sentence}") for sentence in self._sentences(window)]
        return Group(*parts)

    def _repr_html_(self) -> str:
        """Render it for a notebook: styles are in the elements, and nothing is fetched."""
        return self._html(style_attribute)

    def _html(self, styled: Callable[[str], Markup]) -> str:
        windows = [
            (
                window,
                self._predicted(window),
                shaded_rows(window),
                self._sentences(window),
            )
            for window in self.windows
        ]
        template = environment(self.nouns).get_template("explanation.html")
        return template.render(
            explanation=self,
            classes=self._likeliest(),
            windows=windows,
            styled=styled,
            over=over_picture,
        )

    def _sentences(self, window: Window) -> list[str]:
        names = [*self.classes, *window.tokens]
        return [
            self.nouns.reword(sentence, names)
            for sentence in sentences(window, self.classes, self.unit, self.epsilon)
        ]

    def _predicted(self, window: Window) -> str:
        """Return what is predicted of a window."""
        likeliest = int(window.probabilities.argmax())
        name, value = self.classes[likeliest], window.probabilities[likeliest]
        return " ".join(prediction_text(value, name, is_number=self.is_number))

    def _likeliest(self) -> list[tuple[str, str]]:
        """Return the likeliest classes with their probabilities, and how many more classes there are."""
        order = np.argsort(-self.probabilities, kind="stable")
        pairs = [
            prediction_text(self.probabilities[i], self.classes[i], is_number=self.is_number)
            for i in order[:NAMED]
        ]
        rest = len(order) - NAMED
        return [*pairs, ("…", f"{rest} more classes")] if rest > 0 else pairs

    def show(self) -> None:
        """Print it."""
        show(self)

    def save(self, path: str | Path) -> Path:
        """Write it as a self-contained page without scripts (.html); return the path.

        Raises:
            InputError: the file cannot be written.
        """
        template = environment(self.nouns).get_template("explanation_page.html")
        styled = InlineStyles()
        body = Markup(self._html(styled))
        write_atomically(Path(path), template.render(name=self.name, body=body, styled=styled))
        return Path(path)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return the numbers per token, one row each; `window` counts from 0.

        The last columns are the `adversary`, and whether the token `flips` the answer with the others of its
        set; a model that gives a number has neither.
        """
        import pandas as pd

        frames = []
        for count, window in enumerate(self.windows):
            erased = np.zeros(len(window.tokens), dtype=bool)
            erased[window.flip.words if window.flip else []] = True
            columns: dict[str, Any] = {
                "window": count,
                "token": window.tokens,
                "unknown": window.unknown,
            }
            for name in PER_TOKEN:
                columns[name] = getattr(window, name)
            if not self.is_number:
                other = np.nan if window.adversary is None else window.adversary.weights
                columns |= {"adversary": other, "flips": erased}
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; undefined values are None.

        `name`, `model`, `text`, `query` (tokens, or None), `classes`, `epsilon` and `notes` are the attributes;
        `answer` is the predicted class, `probabilities` are in the order of the classes. Each window has

        * `tokens`, and in their order `unknown`, `attention`, `gradient`, `leave_one_out`, `signed`,
          `read_out`, `read_out_attention`;
        * its own `probabilities`, and `importance_mass` and `largest_mass`;
        * `adversary`: `weights`, `jsd`, `jsd_upper`, `exact`; or None;
        * `flip`: `tokens` (their positions, from 0), `mass` (the attention on them), `answer`, `probability`
          and `ranking` ("exact", or the ranking whose first tokens they are); or None where nothing flips;
        * of a picture `picture`: its `uri`, and the `columns` and `rows` of its patches;
        * `smallest`: whether `flip` is exact, so that None is a proof; and `flip_along_map`.

        Of a model that gives a number, `output` is the number and `unit` what it counts, in place of `classes`,
        `epsilon`, `answer` and `probabilities`; a window has its own `output`, and nothing from `adversary` on
        but the picture.
        """
        predicted: dict[str, Any] = {
            "classes": self.classes,
            "epsilon": self.epsilon,
            "answer": self.answer,
            "probabilities": _numbers(self.probabilities),
        }
        if self.is_number:
            predicted = {"output": _number(self.probabilities[0]), "unit": self.classes[0]}
        return {
            "name": self.name,
            "model": self.model,
            "text": self.text,
            "query": self.query,
            **predicted,
            "notes": self.notes,
            "windows": [self._window_values(window) for window in self.windows],
        }

    def _window_values(self, window: Window) -> dict[str, Any]:
        flip, adversary = window.flip, window.adversary
        values = {
            name: _numbers(value) if isinstance(value, np.ndarray) else value
            for name, value in vars(window).items()
        }
        values |= {"unknown": window.unknown.tolist()}
        del values["picture"]
        if window.picture is not None:
            values["picture"] = asdict(window.picture)
        values |= {
            "importance_mass": _number(window.importance_mass),
            "largest_mass": _number(window.largest_mass),
        }
        if self.is_number:
            for name in ("probabilities", *OF_CLASSES):
                del values[name]
            return {**values, "output": _number(window.probabilities[0])}
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
        return "<hr>".join(explanation._repr_html_() for explanation in self)

    def show(self) -> None:
        """Print them."""
        for explanation in self:
            explanation.show()

    def to_dataframe(self) -> "pd.DataFrame":
        """Return the numbers per token of all texts (see `Explanation.to_dataframe`).

        Three columns come first: `text` counts the texts from 0, `answer` is the predicted class,
        `probability` its probability. Of a model that gives a number they are `text`, `output` and `unit`.
        """
        import pandas as pd

        frames = []
        for index, explanation in enumerate(self):
            frame = explanation.to_dataframe()
            likeliest = float(explanation.probabilities.max())
            first: dict[str, Any] = {
                "text": index,
                "answer": explanation.answer,
                "probability": likeliest,
            }
            if explanation.is_number:
                first = {"text": index, "output": likeliest, "unit": explanation.classes[0]}
            for place, (column, constant) in enumerate(first.items()):
                frame.insert(place, column, constant)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
