"""Put a vision transformer on trial: the patches of a picture in place of the words of a text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from heedmap.data.corpus import UNKNOWN, Corpus, Split
from heedmap.data.digit_pictures import digit_pictures
from heedmap.data.embedded import EMBEDDED_PICTURES
from heedmap.data.encoded_pictures import changes_of, colours_of
from heedmap.data.in_memory import InMemory
from heedmap.data.item_vectors import ItemVectors, held_bag
from heedmap.data.load import corpus_of
from heedmap.data.pictures import file_changes, read_picture_folders, stored_picture
from heedmap.data.pictures_in_memory import held_picture, labelled_pictures
from heedmap.data.texts import Text
from heedmap.errors import InputError
from heedmap.files.naming import is_there
from heedmap.huggingface.class_names import class_names
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.measuring import Drift, difference, roundings
from heedmap.huggingface.model_adapter import eagerly
from heedmap.huggingface.patch_model import PatchModel
from heedmap.huggingface.patch_tokens import PADDING, PatchTokens, covered
from heedmap.huggingface.picture_loading import (
    Picturing,
    load_picture_model,
    made_up_pictures,
)
from heedmap.huggingface.sides import OUTSIDE
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.truncation import Truncated
from heedmap.huggingface.verification import Check, VerificationResult, drift_on, verify_on
from heedmap.nouns import PICTURES
from heedmap.settings.data import DataSettings
from heedmap.settings.models import TransformerSettings


class PictureClassifier(TransformerClassifier):
    """A vision transformer with one layer's weights on trial (see `TransformerClassifier`).

    A picture is a text whose tokens name its patches, in the rows of `grid`. Left out, a patch has no position
    in the sequence, and the others keep the position embeddings of their places; masked, its place is covered
    with grey. `look_up` says of which pictures the names are; at first they are made-up ones.
    """

    nouns = PICTURES

    def __init__(
        self,
        model: PatchModel,
        tokens: PatchTokens,
        settings: TransformerSettings,
        classes: Sequence[str],
    ) -> None:
        self.grid, self.samples = model.table.grid, samples(tokens.pictures)
        super().__init__(model, tokens, settings, classes)
        # Measured here: later the made-up pictures are gone.
        sample = self.inputs(self.batch(self.samples, range(len(self.samples))))
        self._drift = drift_on(model, sample)

    @property
    def architecture(self) -> str:
        """Return the name of the model's class in transformers."""
        assert isinstance(self.model, PatchModel)
        return self.model.architecture

    def look_up(self, pictures: ItemVectors) -> None:
        """Read the patches of these pictures from now on."""
        assert isinstance(self.model, PatchModel)
        assert isinstance(self.tokenizer, PatchTokens)
        self.model.table.pictures = self.tokenizer.pictures = pictures

    def read_corpus(self, settings: DataSettings, in_memory: InMemory | None = None) -> Corpus:
        """Read the pictures of a folder of class folders, or those `in_memory`, and look patches up in them.

        Raises:
            InputError: an option of texts, or what `read_picture_folders`, `labelled_pictures` and `corpus_of`
                raise.
        """
        label = None if in_memory is not None else settings.label
        if settings.query is not None or settings.text is not None or label is not None:
            raise InputError(
                f"{settings.source}: expected no names of columns: the model reads pictures, whose class is "
                "the name of their folder; leave them out"
            )
        if self.settings.long_texts == "windows":
            raise InputError(
                "--long-texts windows: an option of texts; the model reads a picture whole; leave it out"
            )
        if in_memory is not None:
            settings = settings.model_copy(update={"source": in_memory.name})  # in errors
            texts = labelled_pictures(in_memory.tables, in_memory.name, settings.label, self.grid)
        elif settings.source in EMBEDDED_PICTURES:
            texts = digit_pictures(self.grid)
        else:
            texts = read_picture_folders(Path(settings.source), self.grid)
        corpus = corpus_of(texts, settings, self.classes)
        if in_memory is not None:
            source = corpus.settings.model_copy(update={"source": in_memory.source()})
            corpus = replace(corpus, settings=source, in_memory=in_memory)
        assert corpus.vectors is not None
        corpus.vectors.check(tokens[0] for tokens in corpus.splits["test"].tokens)
        self.look_up(corpus.vectors)
        return corpus

    def one_picture(self, name: str, picture: object = None) -> tuple[Split, list[str]]:
        """Return a split of one picture, which the model looks up beside those that it knows, and notes.

        Args:
            name: of the picture, its file if it is not in memory.
            picture: in memory (see `colours_of`).

        Raises:
            InputError: no such file, or no picture.
        """
        assert isinstance(self.tokenizer, PatchTokens)
        if picture is None:
            file = _picture_file(name)
            changes = file_changes(file)
            name, key, bag = file.name, str(file.resolve()), stored_picture(file, self.grid)
        else:
            changes = changes_of(picture)
            bag = held_picture(colours_of(picture), name, self.grid)
            key = f"memory {bag.content.hex()[:16]}"
        bags = {**self.tokenizer.pictures.bags, key: bag}
        pictures = ItemVectors(bags, self.grid.width, in_memory=False)
        names = pictures.names(key, self.grid.signs())
        pictures.check(names[:1])
        self.look_up(pictures)
        notes = [f"the picture has {said}" for said in changes]
        return Split([name], [names], np.array([UNKNOWN]), vectors=pictures), notes

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Count the positions of each picture, special ones included."""
        assert isinstance(self.tokenizer, PatchTokens)
        special = len(self.tokenizer.special)
        return np.array([special + len(text) for text in texts], dtype=np.int64)

    def truncated(self, text: Text, longest: int) -> Truncated | None:
        """Return None: a picture has as many patches as the model reads."""
        return None

    def own_words(self, texts: Sequence[Text]) -> Iterator[list[int]]:
        """Yield for each picture that each patch is one by itself."""
        yield from (list(range(len(text))) for text in texts)

    def readable(self, texts: Sequence[Text]) -> NDArray[np.bool_]:
        """Return that every picture is."""
        return np.ones(len(texts), dtype=bool)

    def mask_token(self, text: Text, place: int) -> Text:
        """Cover one patch with grey."""
        return [*text[:place], covered(text[place]), *text[place + 1 :]]

    def batch(self, texts: Sequence[Text], rows: Sequence[int]) -> SubwordBatch:
        """Number the patches of some pictures after the special tokens, padded on the right."""
        assert isinstance(self.tokenizer, PatchTokens)
        return batch_of(self.tokenizer, texts, rows, self.model.device)

    def drift(self) -> Drift:
        """Return how eager attention differs from the model's default on made-up pictures."""
        return self._drift


def _picture_file(path: str) -> Path:
    file = Path(path).expanduser()
    if not is_there(path):
        raise InputError(f"{path:.200}: expected the file of a picture; it is not there")
    if file.is_dir():
        raise InputError(
            f"{path:.200}: expected the file of a picture, got a folder; all pictures in it are "
            f"explained by `heedmap explain MODEL --data {path}`"
        )
    return file


def open_pictures(
    settings: TransformerSettings, source: object, device: str | None = None
) -> PictureClassifier:
    """Load a classifier of pictures from its folder or by its name on the Hub.

    Raises:
        InputError: it cannot be loaded, or fails the verification.
    """
    if settings.output is not None:
        raise InputError(
            "--output: an option of a model of texts with several labels; leave it out"
        )
    model, tokens, result = load_verified(source, settings.dtype, device)
    if (refusal := result.refusal) is not None:
        raise InputError(refusal)
    classes = class_names(model.config.id2label, str(source))
    return PictureClassifier(model, tokens, settings, classes)


def load_verified(
    source: object, dtype: str = "float32", device: str | None = None
) -> tuple[PatchModel, PatchTokens, VerificationResult]:
    """Load a classifier of pictures to be read by patches, and verify it on made-up pictures.

    The verification is that of texts (see `heedmap.huggingface.verification`); as loaded it is compared on
    whole pictures.

    Raises:
        InputError: it cannot be loaded.
    """
    classifier, picturing = load_picture_model(source, dtype, device)
    made_up = made_up_pictures(picturing)
    pixels = torch.from_numpy(np.stack([picturing.pixels(picture) for picture in made_up]))
    with torch.no_grad(), eagerly(classifier):
        expected = classifier(pixel_values=pixels.to(classifier.device, classifier.dtype)).logits
    model, tokens = read_by_patches(classifier, picturing)
    pictures = tokens.pictures
    names, rows = tokens.model_input_names, range(len(made_up))
    whole = batch_of(tokens, [pictures.names(name) for name in pictures.bags], rows, model.device)
    parts = batch_of(tokens, samples(pictures), rows, model.device)
    with torch.no_grad(), eagerly(model):
        off = difference(model(**whole.inputs(names)).logits, expected)
    unit = torch.finfo(model.dtype).eps * roundings(model.dtype)
    limit = unit * max(1.0, float(expected.abs().max()))
    said = f"{len(made_up)} whole pictures as transformers reads them: answers differ by {off:.1e}"
    check = Check("as loaded", "as loaded", off <= limit, off, f"{said} (at most {limit:.1e})")
    result = verify_on(model, parts.inputs(names))
    return (
        model,
        tokens,
        replace(
            result,
            architecture=model.architecture,
            checks=tuple(
                replace(made, explanation=PICTURES.reword(made.explanation))
                for made in (*result.checks, check)
            ),
        ),
    )


def read_by_patches(
    classifier: PreTrainedModel, picturing: Picturing
) -> tuple[PatchModel, PatchTokens]:
    """Return a model of transformers as one that reads the patches of made-up pictures, at first."""
    made_up = enumerate(made_up_pictures(picturing))
    bags = {str(i): held_bag(picturing.grid.cut(picture), "made up") for i, picture in made_up}
    pictures = ItemVectors(bags, picturing.grid.width, in_memory=True)
    model = PatchModel(classifier, picturing, pictures)
    model.train(False)
    return model, PatchTokens(special_tokens(model), pictures, picturing)


def samples(pictures: ItemVectors) -> tuple[Text, ...]:
    """Return the first picture whole, the second without its first third, and one patch of the third."""
    whole, part, least = (pictures.names(name) for name in pictures.bags)
    return whole, part[len(part) // 3 :], least[-1:]


def special_tokens(model: PatchModel) -> list[str]:
    """Name the positions before the patches."""
    count, is_deit = len(model.table.special()), "DeiT" in model.architecture
    rest = ["[DIST]"] if is_deit else [f"[REG{i}]" for i in range(1, count)]
    return ["[CLS]", *rest]


def batch_of(
    tokens: PatchTokens, texts: Sequence[Text], rows: Sequence[int], device: torch.device
) -> SubwordBatch:
    """Number the patches of some pictures after the special tokens, padded on the right."""
    first, sizes = len(tokens.special), torch.tensor([len(text) for text in texts])
    longest = int(sizes.max()) if len(texts) else 0
    mask = torch.arange(longest) < sizes[:, None]
    ids = torch.full((len(texts), first + longest), PADDING)
    ids[:, :first] = torch.tensor(tokens.special_ids)
    for row, text in enumerate(texts):
        ids[row, first : first + len(text)] = torch.tensor(
            [*map(tokens.patch_id, text)], dtype=torch.long
        )
    words = torch.full_like(ids, -1)
    words[:, first:] = torch.where(mask, torch.arange(longest), -1)
    return SubwordBatch(
        rows=torch.as_tensor(list(rows), device=device),
        ids=ids.to(device),
        mask=mask.to(device),
        labels=torch.zeros(len(texts), dtype=torch.long, device=device),
        real=(ids != PADDING).to(device),
        words=words.to(device),
        types=torch.zeros_like(ids, device=device),
        sides=torch.where(words >= 0, 0, OUTSIDE).to(device),
    )
