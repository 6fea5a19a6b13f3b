"""Find a model and read its configuration, without its weights: what it answers and what its outputs are named.

Code that comes with a model is never run. A folder is read without the network.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PreTrainedConfig

from heedmap.data.asked_words import FIRST_AND_SECOND
from heedmap.data.streams import reading
from heedmap.errors import InputError
from heedmap.files.naming import MODEL, check_name, is_there, name_of
from heedmap.huggingface.checkpoints import (
    PEFT_CONFIG,
    check_class_numbers,
    check_config,
    config_of,
)
from heedmap.huggingface.class_names import class_names
from heedmap.huggingface.classification_head import check_head
from heedmap.huggingface.classification_head import untrained as untrained_head
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.one_output import (
    OneOutput,
    gives_number,
    is_relevance,
    one_output,
    unit_of,
)
from heedmap.huggingface.peft_adapters import Adapter, adapter_at, base_of
from heedmap.huggingface.refusals import no_config
from heedmap.huggingface.tasks import Task, task_of
from heedmap.huggingface.tokenization import Place


@dataclass(frozen=True)
class FoundModel:
    """A model before its weights are read: where it lies and its configuration.

    Of an adapter these are its base model's, with the outputs of the head that the adapter brings.
    """

    place: Place
    config: PreTrainedConfig
    adapter: Adapter | None = None

    @property
    def task(self) -> Task:
        """Return what the model answers; an adapter brings a head that classifies texts."""
        return Task.TEXTS if self.adapter is not None else task_of(config_of(self.place))

    def check_head(self) -> bool:
        """Check what config.json says of the outputs, and return whether they are several labels at once.

        Raises:
            InputError: several amounts, or quantised weights, or a head that classifies nothing.
        """
        written = config_of(self.place)
        if self.adapter is not None:
            written |= self.adapter.outputs()
        return check_head(written, self.place.what, of_words=self.task.is_asked_of_words)

    def outputs(
        self, label: str | None = None, threshold: float = 0.5, unit: str | None = None
    ) -> tuple[list[str], OneOutput | None]:
        """Return the names of a classifier's classes in their order.

        With the output that is read as no and yes, of a cross-encoder with one output or of several labels. The
        classes of a masked language model are the two words that may be hidden. Of a model that gives a number
        it is one name, the number's `unit`.

        Raises:
            InputError: as `heedmap.huggingface.loading.load_classifier`, for what the configuration says.
        """
        place, config = self.place, self.config
        several = self.check_head()
        if self.task is Task.MASKS:
            one_output(config, label, threshold, several=False)  # refuses options of several labels
            return [*FIRST_AND_SECOND], None
        if self.adapter is None and (headless := untrained_head(config_of(place))):
            # Else the labels would be refused, for not being the names that transformers makes up.
            raise InputError(
                f"expected a trained classifier in {place.what}; {headless}has no classification head; "
                f"fine-tune it first: `heedmap train --model {place.source}`"
            )
        check_class_numbers(place)
        check_classes(place, config)
        output = one_output(config, label, threshold, several=several)
        if unit is not None or gives_number(config):
            return [unit_of(config, unit)], output
        names = class_names(config.id2label, place.what) if output is None else output.classes
        return names, output

    def labels(self) -> list[str] | None:
        """Return the names of the labels that the model gives several of at once; None of a model of classes.

        Raises:
            InputError: as `outputs`.
        """
        if not self.check_head():
            return None
        check_class_numbers(self.place)
        return class_names(self.config.id2label, self.place.what)


def find_model(source: object) -> FoundModel:
    """Return where a model or an adapter lies, and its configuration.

    Raises:
        InputError: as `heedmap.huggingface.loading.load_classifier`, for what the configuration says.
    """
    place = find_place(source)
    with quiet():
        try:
            adapter = adapter_at(place)
        except InputError:
            raise
        except Exception as error:  # the Hub cannot be reached
            raise no_config(place, error) from error
    if adapter is None:
        return FoundModel(place, configuration(place))
    with base_of(adapter):
        place = find_place(adapter.base)
        config = configuration(place)
    adapter.declare_outputs(config)
    return FoundModel(place, config, adapter)


def refuse_word_classes(source: object) -> None:
    """Refuse to fine-tune a token classifier, before the texts are read; other faults are said later.

    Raises:
        InputError: it is one.
    """
    try:
        task = find_model(source).task
    except InputError:
        return
    if task is Task.WORDS:
        raise InputError(
            f"{source}: expected a model to fine-tune as a classifier of texts, got one of token "
            "classification, which heedmap audits and does not train; train it with transformers, or name "
            "another model"
        )


def written_config(source: object) -> dict[str, Any]:
    """Return a model's config.json as it is written; empty of an adapter, which has none.

    Raises:
        InputError: no such folder or name, or no model in it.
    """
    place = find_place(source)
    try:
        return config_of(place)
    except InputError:
        raise
    except OSError as error:  # the Hub cannot be reached
        raise no_config(place, error) from error


def configuration(place: Place, auto: Any = None) -> PreTrainedConfig:
    """Load the configuration of a classifier of texts or words, or of what the class `auto` loads.

    Raises:
        InputError: it is missing, damaged or of another architecture; there is an adapter.
    """
    with quiet():
        try:
            check_config(place)
            config: PreTrainedConfig = AutoConfig.from_pretrained(
                place.source, local_files_only=place.local, trust_remote_code=False
            )
        except InputError:
            raise
        except Exception as error:  # the file is bad, or cannot be reached
            raise no_config(place, error) from error
    task = task_of(config_of(place))
    known = {Task.TEXTS.auto_class, task.auto_class} if auto is None else {auto}
    if not any(type(config) in kind._model_mapping for kind in known):
        raise InputError(
            f"expected a text classifier in {place.what}, got the architecture {config.model_type}, which "
            "transformers' AutoModelForSequenceClassification does not list; choose another model"
        )
    config.return_dict = True  # answers are taken by name
    return config


def find_place(source: object) -> Place:
    """Return where a model is to be looked for, by its folder or its name on the Hub.

    Raises:
        InputError: no such folder, no model in it, or a name that cannot be one.
    """
    name = name_of(source, MODEL)
    if not is_there(name) and not _is_path(name):
        check_name(name, MODEL)
    with reading(name):
        path = Path(name).expanduser()
        exists, is_dir = path.exists(), path.is_dir()
    if is_dir:
        if not any((path / name).is_file() for name in ("config.json", PEFT_CONFIG)):
            raise InputError(
                f"expected a model in the folder {path}; it holds no config.json; "
                "give the folder that `save_pretrained` wrote"
            )
        return Place(str(path), local=True)
    if exists:
        raise InputError(f"expected a model's folder or a name on the Hub; {path} is a file")
    if _is_path(name):
        raise InputError(f"expected a model's folder; {name:.200} does not exist; check the path")
    return Place(name, local=False)


def _is_path(name: str) -> bool:
    return name.isprintable() and (name.startswith((".", "/", "~")) or name.count("/") > 1)


def check_classes(place: Place, config: PreTrainedConfig) -> None:
    """Check the names of the outputs.

    Raises:
        InputError: fewer than two classes, names that are not different, or names of several lines.
    """
    if gives_number(config):
        return
    if (config.num_labels or 0) < 2 and not is_relevance(config):
        raise InputError(
            f"expected a classifier of two or more classes, or a regression, in {place.what}; it has one "
            f"output and problem_type {config.problem_type}; choose a model with classes"
        )
    names = Counter(str(name).strip() for name in (config.id2label or {}).values())
    if twice := [name for name, count in names.items() if count > 1]:
        raise InputError(
            f"expected different class names in {place.what}; its config.json (id2label) has "
            f"{', '.join(twice[:3])} for several outputs; give each a name of its own"
        )
    if odd := [name for name in names if len(name.splitlines()) != 1]:
        raise InputError(
            f"expected class names of one line in {place.what}; its config.json (id2label) has "
            f"{odd[0]!r:.40}; rename it"
        )
