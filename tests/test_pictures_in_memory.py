"""Pictures in memory: audited as those in files, kept with a run, and refused by what is wrong with them."""

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from tiny_transformers import reviews_classifier
from tiny_vision import CLASSES, picture, plain_vision, processor, saved_vision
from wording import refused

import heedmap as hm
from heedmap.data.encoded_pictures import decoded, encoded, is_picture

LABELS = CLASSES * 2
ARRAYS = [picture(number) for number in range(6)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved_vision(tmp_path_factory.mktemp("vit"))


def answers(run):
    test = run.corpus.splits["test"]
    return run.model.logits(run.model.batch(test.texts, range(len(test))))


def test_a_picture_survives_its_writing():
    for colours in (*ARRAYS, np.zeros((1, 1, 3), np.uint8)):
        assert np.array_equal(decoded(encoded(colours)), colours)
        assert encoded(Image.fromarray(colours)) == encoded(colours)
    assert is_picture(ARRAYS[0])
    assert is_picture(Image.new("L", (2, 2)))
    others = (ARRAYS[0].astype(float), ARRAYS[0][:, :, 0], "a text", None)
    assert not any(map(is_picture, others))


def test_all_that_holds_the_pictures_gives_what_files_of_them_give(model, tmp_path):
    for number, (colours, label) in enumerate(zip(ARRAYS, LABELS, strict=True)):
        (tmp_path / label).mkdir(exist_ok=True)
        Image.fromarray(colours).save(tmp_path / label / f"{number}.png")
    of_files = hm.open_model(model, tmp_path, progress=False)
    order = [int(key.split("/")[1][0]) for key in of_files.corpus.splits["test"].keys]
    images = [Image.fromarray(colours) for colours in ARRAYS]
    rows = [{"image": i, "label": label} for i, label in zip(images, LABELS, strict=True)]
    sources = [
        (images, LABELS),
        (ARRAYS, LABELS),
        (np.stack(ARRAYS), LABELS),
        (rows, None),
        (pd.DataFrame(rows), None),
        (datasets.Dataset.from_list(rows), None),
    ]
    names = set()
    for data, labels in sources:
        run = hm.open_model(model, data, labels=labels, progress=False)
        assert torch.equal(answers(run)[order], answers(of_files))
        test = run.corpus.splits["test"]
        assert [run.model.classes[label] for label in test.labels] == LABELS
        assert run.settings.nouns.items == "patches"
        names.add(run.settings.data.source)
    assert len(names) == 1  # the same pictures, wherever they stood
    pair = plain_vision("vit"), processor()
    of_pair = hm.open_model(pair, images, labels=LABELS, progress=False)
    assert torch.equal(answers(of_pair)[order], answers(of_files))


def test_a_run_keeps_its_pictures(model, tmp_path):
    run = hm.open_model(model, ARRAYS, labels=LABELS, out=tmp_path / "run", progress=False)
    audit = hm.audit(run, permutations=3, progress=False)
    again = hm.open_run(tmp_path / "run")
    assert torch.equal(answers(again), answers(run))
    assert again.corpus.fingerprint() == run.corpus.fingerprint()
    assert audit["instances"]["picture"][0].startswith("data:image/png")
    hm.open_model(model, ARRAYS, labels=LABELS, out=tmp_path / "run", progress=False)  # the same
    others = [*ARRAYS[:-1], picture(99)]
    other = hm.open_model(model, others, labels=LABELS, progress=False)
    assert other.corpus.fingerprint() != run.corpus.fingerprint()


@pytest.mark.filterwarnings("ignore:.*no label|.*label missing|.*labels")
def test_labels_may_be_missing_and_what_does_not_fit_is_refused(model, tmp_path):
    run = hm.open_model(model, ARRAYS, progress=False)
    assert run.corpus.splits["test"].labels.tolist() == [-1] * 6
    some = hm.open_model(model, ARRAYS, labels=[None, *LABELS[1:]], progress=False)
    assert len(some.corpus.splits["test"]) == 5
    assert some.corpus.left_out["label missing"] == 1
    with refused("a label for each picture", "2", "6"):
        hm.open_model(model, ARRAYS, labels=["cat", "dog"], progress=False)
    with refused("index 1", "a picture", "a text"):
        hm.open_model(model, [{"image": ARRAYS[0]}, {"image": "a text"}], progress=False)
    with refused("pictures in memory", "image", "text"):
        hm.open_model(model, ["a text"], progress=False)
    with refused("fox"):
        hm.open_model(model, ARRAYS, labels=["fox"] * 6, progress=False)
    reviews_classifier(tmp_path / "texts")
    with refused("image", "--text-column"):
        hm.open_model(tmp_path / "texts", ARRAYS, labels=LABELS, progress=False)
