"""Verify a classifier: is its attention read and replaced exactly?"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

from heedmap.files.naming import MODEL, name_of
from heedmap.runs.stored_models import Device, device_name
from heedmap.terminal.html import html_table
from heedmap.terminal.output import printable

if TYPE_CHECKING:
    import pandas as pd

    from heedmap.huggingface.from_memory import Loaded
    from heedmap.huggingface.verification import Check, VerificationResult


@dataclass(frozen=True, repr=False)
class Verification:
    """What was measured on a model. It is true if the model passes.

    `model` is its folder or name; `result` holds the measurements.
    """

    model: str
    result: "VerificationResult"

    def __bool__(self) -> bool:
        return self.passes

    @property
    def passes(self) -> bool:
        """Return whether the model can be audited."""
        return self.refusal is None

    @property
    def refusal(self) -> str | None:
        """Return in one line why it cannot be audited and what to do; None if it can."""
        return self.result.refusal

    def __repr__(self) -> str:
        lines = [f"{printable(self.model)}: {self.result.architecture}, {self._verdict()}"]
        for check in self.result.checks:
            measured = "" if check.value is None else f" ({check.value:.2g})"
            lines.append(
                f"  {check.name}: {_outcome(check)}{measured}; {printable(check.explanation)}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for check in self.result.checks:
            measured = "–" if check.value is None else f"{check.value:.2g}"
            rows.append((check.name, _outcome(check), measured, check.explanation))
        title = f"{self.model}: {self.result.architecture}, {self._verdict()}"
        return html_table(rows, ("check", "result", "measured", "what it says"), title)

    def _verdict(self) -> str:
        size = f"{self.result.size} (layers × heads)"
        return f"{size}: its attention is read and replaced exactly" if self else str(self.refusal)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return the measurements, one row each."""
        import pandas as pd

        columns = ["name", "part", "passed", "value", "explanation"]
        return pd.DataFrame([asdict(check) for check in self.result.checks], columns=columns)


def _outcome(check: "Check") -> str:
    if check.part == "report":
        return "noted"
    return "passes" if check.passed else "FAILS"


def check(
    model: Union[str, Path, "Loaded"], *, dtype: str = "float32", device: Device | None = None
) -> Verification:
    """Verify that a classifier's attention is read and replaced exactly, as `heedmap check` does.

    Args:
        model: a Hugging Face classifier: its folder, its name on the Hub, or (model, tokenizer), (model, image
            processor) or a pipeline of text or image classification, which stay as they are.
        dtype: of the weights: float32, float16 or bfloat16.
        device: cpu, cuda or cuda:N, as a name, a torch.device or the number N [cpu; that of a model in
            memory].

    Raises:
        InputError: it cannot be loaded. A model that is loaded and fails is a result.
        TypeError: a model of another kind.
    """
    from heedmap.huggingface.from_memory import WHAT, copy_device, loaded_parts, saved

    device = device_name(device)
    if (parts := loaded_parts(model)) is not None:
        place = copy_device(parts[0]) if device is None else device
        with saved(*parts) as folder:
            return Verification(WHAT, verified(folder, dtype, place))
    name = name_of(model, MODEL)
    return Verification(name, verified(name, dtype, device))


def verified(source: str | Path, dtype: str, device: str | None) -> "VerificationResult":
    """Measure whether the attention of a model in a folder or on the Hub is read and replaced exactly.

    Raises:
        InputError: it cannot be loaded.
    """
    from heedmap.huggingface.loading import load_classifier
    from heedmap.huggingface.picture_classifier import load_verified
    from heedmap.huggingface.picture_loading import reads_pictures
    from heedmap.huggingface.verification import verify

    if reads_pictures(source):
        return load_verified(source, dtype, device)[-1]
    return verify(*load_classifier(source, dtype, device))
