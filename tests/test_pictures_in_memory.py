"""Pictures in memory: audited as those in files, kept with a run, and refused by what is wrong with them."""

from dataclasses import replace

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf
from made_audits import Elements
from PIL import Image
from tiny_transformers import reviews_classifier
from tiny_vision import CLASSES, picture, plain_vision, processor, saved_vision
from wording import refused

import heedmap as hm
from heedmap.data.encoded_pictures import colours_of, decoded, encoded

LABELS = CLASSES * 2
ARRAYS = [picture(number) for number in range(6)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved_vision(tmp_path_factory.mktemp("vit"))


def answers(run):
    test = run.corpus.splits["test"]
    return run.model.logits(run.model.batch(test.texts, range(len(test))))


def test_a_picturesurvives_its_writing():
    for colours in (*ARRAYS, np.zeros((1, 1, 3), np.uint8)):
        assert np.array_equal(decoded(encoded(colours)), colours)
        assert encoded(colours_of(Image.fromarray(colours))) == encoded(colours)


def test_grey_and_transparent_arrays_are_read_as_pil_reads_them():
    colours = ARRAYS[0]
    grey = colours[:, :, 0]
    transparent = np.dstack([colours, grey])
    for array in (grey, transparent):
        expected = np.asarray(Image.fromarray(array).convert("RGB"))
        np.testing.assert_array_equal(colours_of(array), expected)
    np.testing.assert_array_equal(colours_of(grey[:, :, None]), colours_of(grey))
    np.testing.assert_array_equal(colours_of(transparent), colours)


NO_PICTURES = [
    (ARRAYS[0] / 255, ["(20, 30, 3)", "float64"]),
    (ARRAYS[0] * np.nan, ["(20, 30, 3)", "float64"]),
    (ARRAYS[0].astype(int), ["(20, 30, 3)", "int64"]),
    (ARRAYS[0].transpose(2, 0, 1), ["(3, 20, 30)", "uint8"]),
    (ARRAYS[0][:, :, :2], ["(20, 30, 2)", "uint8"]),
    (torch.from_numpy(ARRAYS[0]), ["torch.Tensor", "(20, 30, 3)", "torch.uint8"]),
    (ARRAYS[0][:0], ["one pixel or more", "(0, 30, 3)"]),
    (Image.new("RGB", (0, 4)), ["one pixel or more", "0 × 4"]),
]


@pytest.mark.parametrize(("thing", "named"), NO_PICTURES)
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_picture_is_refused_by_its_shape_and_its_type(model, thing, named, place):
    pictures = [*ARRAYS[:place], thing, *ARRAYS[place + 1 :]]
    with refused(f"picture {place}", "expected", *named):
        hm.open_model(model, pictures, labels=LABELS, progress=False)
    with refused(f"picture {place}", "expected", *named, kind=TypeError):
        hm.explain(model, pictures)
    columns = pd.DataFrame({"image": pictures, "label": LABELS})
    with refused(f"index {place}", "image", "expected", *named):
        hm.open_model(model, columns, progress=False)


def test_one_picture_and_paths_are_no_list_of_pictures(model, tmp_path):
    for one in (ARRAYS[0], Image.fromarray(ARRAYS[0]), ARRAYS[0] / 2, ARRAYS[0].transpose(2, 0, 1)):
        with refused("a list of pictures", "got one", "[picture]", kind=TypeError):
            hm.open_model(model, one, progress=False)
    paths = [str(tmp_path / f"{number}.png") for number in range(6)]
    for data in (paths, [{"image": path} for path in paths]):
        with refused("paths of files are not taken", "the folder"):
            hm.open_model(model, data, progress=False)
    with refused("PosixPath", "the folder", kind=TypeError):
        hm.open_model(model, [tmp_path], labels=["cat"], progress=False)


def same(one, other):
    """Return whether two explanations are the same beside the names of picture and model."""
    apart = ("text", "name", "model")
    first, second = (
        {key: said for key, said in explanation.to_dict().items() if key not in apart}
        for explanation in (one, other)
    )
    return first == second


@pytest.mark.exhaustive
def test_a_picture_in_memory_is_explained_as_its_file(model, tmp_path):
    images = [Image.fromarray(colours) for colours in ARRAYS[:3]]
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for image, file in zip(images, files, strict=True):
        image.save(file)
    expected = hm.explain(model, [str(file) for file in files])
    run = hm.open_model(model, ARRAYS, labels=LABELS, progress=False)
    pair = plain_vision("vit"), processor()
    pipe = hf.pipeline("image-classification", model=pair[0], image_processor=pair[1])
    cases = [(run, form) for form in (images, ARRAYS[:3], np.stack(ARRAYS[:3]), files)]
    for source, pictures in [*cases, (pair, images)]:
        explained = hm.explain(source, pictures)
        assert [*map(same, explained, expected)] == [True] * 3
    for one in (images[1], ARRAYS[1], files[1], str(files[1])):
        assert same(run.explain(one), expected[1])
    assert same(hm.explain(pipe, ARRAYS[1]), expected[1])
    assert run.predict(images) == [explanation.answer for explanation in expected]
    assert run.explain(images[1]).text == "picture in memory"
    assert run.explain(images)[1].text == "picture 1 in memory"
    transparent = Image.fromarray(np.dstack([ARRAYS[1], ARRAYS[1][:, :, 0]]))
    explanation = run.explain(transparent)
    assert ["transparency" in note for note in explanation.notes] == [True]
    assert same(replace(explanation, notes=[]), expected[1])


def test_what_cannot_be_explained_as_a_picture_is_refused_in_words_of_pictures(model, tmp_path):
    run = hm.open_model(model, ARRAYS, labels=LABELS, progress=False)
    a_picture = ["the file of a picture", "PIL image", "(height, width, 3)"]
    for thing in (None, 3, b"cat.png", {"image": 1}, {ARRAYS[0].tobytes()}):
        with refused(*a_picture, "got", type(thing).__name__, kind=TypeError):
            run.explain(thing)
    with refused("picture 1", *a_picture, "got int", kind=TypeError):
        run.explain([ARRAYS[0], 3])
    with refused("one picture at least"):
        run.explain([])
    with refused("got a folder", "heedmap explain MODEL --data", tmp_path):
        run.explain(str(tmp_path))
    for part in ("query", "target", "foil"):
        with refused(f"expected no {part}", "pictures"):
            run.explain(ARRAYS[0], **{part: "x"})
    reviews_classifier(tmp_path / "texts")
    for pictures in (ARRAYS[0], Image.fromarray(ARRAYS[0]), ARRAYS):
        with refused("expected a text", "reads texts", "no pictures", kind=TypeError):
            hm.explain(tmp_path / "texts", pictures)


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
    assert "test: 6 pictures, 16.0 patches on average; cat 2, dog 2, owl 2" in repr(run)
    assert "split pictures" in " ".join(Elements(run.corpus._repr_html_()).text)
    audit = hm.audit(run, permutations=3, progress=False)
    names = run.explain(ARRAYS[0]).tokens
    assert names[:5] == ["r0c0", "r0c1", "r0c2", "r0c3", "r1c0"]
    assert audit.maps["token"].tolist() == names * 6
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
    for data, labels in (
        (ARRAYS, LABELS),
        (pd.DataFrame({"image": ARRAYS, "label": LABELS}), None),
    ):
        with refused("expected texts", "got pictures (column image)", "--text-column"):
            hm.open_model(tmp_path / "texts", data, labels=labels, progress=False)
    with refused("expected texts", "got pictures (column image)"):
        hm.load(ARRAYS, LABELS)
