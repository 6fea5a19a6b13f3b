"""Runs of pictures: what goes in, what is refused, and what report and explanation show."""

import json
import re

import numpy as np
import pytest
import transformers as hf
from PIL import Image
from tiny_transformers import reviews_classifier
from tiny_vision import CLASSES, picture, plain_vision, processor, saved_pictures, saved_vision
from wording import refused, warned

import heedmap as hm
from heedmap.calibration.digit_vision import train_digit_vision
from heedmap.data.digit_pictures import drawn_pictures
from heedmap.data.pictures import read_picture
from heedmap.errors import InputError
from heedmap.huggingface.patch_tokens import covered
from heedmap.models.layered import Map
from heedmap.report.anonymous import without_texts


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved_vision(tmp_path_factory.mktemp("vit"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return saved_pictures(tmp_path_factory.mktemp("pictures"))


def test_a_pictures_class_is_its_folder_and_its_patches_lie_in_rows_and_columns(model, pictures):
    run = hm.open_model(model, pictures, progress=False)
    test = run.corpus.splits["test"]
    assert [run.model.classes[label] for label in test.labels] == [
        k.split("/")[0] for k in test.keys
    ]
    assert test.tokens[0][:5] == [f"cat/0.jpg:{i}=r{i // 4}c{i % 4}" for i in range(5)]
    assert test.places[0][5].tolist() == [1.0, 1.0]
    assert sorted(CLASSES) == sorted(run.model.classes)


def test_the_test_split_alone_is_audited_and_other_files_are_counted(model, tmp_path):
    saved_pictures(tmp_path / "train")
    saved_pictures(tmp_path / "test", per_class=1)
    (tmp_path / "test" / "cat" / "notes.txt").write_text("none")
    corpus = hm.open_model(model, tmp_path, progress=False).corpus
    assert sorted(corpus.splits["test"].keys) == [
        "test/cat/0.jpg",
        "test/dog/1.png",
        "test/owl/2.jpg",
    ]
    assert 1 in corpus.left_out.values()


def test_a_run_is_opened_again_from_its_folder_and_knows_a_changed_picture(model, tmp_path):
    data = saved_pictures(tmp_path / "data")
    run = hm.open_model(model, data, out=tmp_path / "run", progress=False)
    again = hm.open_run(tmp_path / "run")
    texts = run.corpus.splits["test"].texts
    both = [r.model.logits(r.model.batch(texts, range(len(texts)))) for r in (run, again)]
    assert (both[0] == both[1]).all()
    Image.fromarray(picture(99)).save(data / "dog" / "1.png")
    with pytest.raises(InputError, match="is not what it was"):
        hm.open_run(tmp_path / "run")


def test_report_and_figures_lay_the_map_over_the_picture(model, pictures, tmp_path):
    audit = hm.audit(hm.open_model(model, pictures, progress=False), permutations=5, progress=False)
    thumbnails = audit["instances"]["picture"].tolist()
    assert all(uri.startswith("data:image/png;base64,") for uri in thumbnails)
    page = audit.save(tmp_path / "report.html").read_text("utf-8")
    assert "The map over the picture" in page
    assert sum(uri in page for uri in thumbnails) == 6
    assert "r0c3" not in audit.bottom_line.sentence


def test_an_explanation_shows_a_picture_that_no_corpus_has(model, pictures, tmp_path):
    run = hm.open_model(model, pictures, progress=False)
    path = pictures / "dog" / "1.png"
    explained, audited = hm.explain(model, str(path)), hm.audit(run, permutations=5, progress=False)
    row = run.corpus.splits["test"].keys.index("dog/1.png")
    np.testing.assert_allclose(
        explained.attention, audited["instances"]["attention"][row], atol=1e-6
    )
    page = explained.save(tmp_path / "page.html").read_text("utf-8")
    assert len(re.findall("<image href=", page)) >= 5
    assert len(re.findall("<rect ", page)) == 16 * len(re.findall("<image href=", page))
    assert "patches" in str(explained)
    # The run still knows its own pictures.
    hm.explain(run, str(path))
    assert (
        run.model.logits(run.model.batch(run.corpus.splits["test"].texts[:1], [0])).isfinite().all()
    )


def test_the_command_checks_and_draws(model, pictures, heedmap, tmp_path):
    assert heedmap("check", str(model)).code == 0
    path = str(pictures / "dog" / "1.png")
    assert heedmap("picture", str(model), path, "--out", str(tmp_path / "p.html")).code == 0
    assert "<image href=" in (tmp_path / "p.html").read_text("utf-8")
    values = json.loads(heedmap("explain", str(model), path, "--json").out)
    assert values["windows"][0]["picture"]["rows"][4:6] == [1, 1]


def test_swin_is_refused_with_the_cause(tmp_path, pictures):
    config = hf.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1], num_heads=[1])
    hf.SwinForImageClassification(config).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="within windows and merges the patches"):
        hm.open_model(tmp_path, pictures, progress=False)


def test_a_model_without_its_preprocessing_is_refused(tmp_path, pictures):
    (saved_vision(tmp_path) / "preprocessor_config.json").unlink()
    with pytest.raises(InputError, match=r"expected preprocessor_config\.json"):
        hm.open_model(tmp_path, pictures, progress=False)


def test_a_processor_of_another_size_is_refused(tmp_path, pictures):
    path = saved_vision(tmp_path) / "preprocessor_config.json"
    made = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**made, "size": {"height": 20, "width": 20}}))
    with pytest.raises(InputError, match="makes pictures of 16 × 16 pixels"):
        hm.open_model(tmp_path, pictures, progress=False)


def test_a_file_that_is_no_picture_is_refused_by_its_name(model, tmp_path):
    saved_pictures(tmp_path)
    (tmp_path / "dog" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"broken\.png: expected a picture"):
        hm.open_model(model, tmp_path, progress=False)
    with pytest.raises(InputError, match=r"none\.png: expected the file of a picture"):
        hm.explain(model, str(tmp_path / "none.png"))


@pytest.mark.parametrize("data", ["reviews", ["a text"]])
def test_texts_are_refused_by_a_model_of_pictures(model, data):
    with pytest.raises(InputError, match="expected a folder of pictures"):
        hm.open_model(model, data, progress=False)


def test_pictures_are_refused_by_other_models_and_for_training(tmp_path):
    with pytest.raises(InputError, match="heedmap audits models and trains none"):
        hm.load("digit-pictures")
    reviews_classifier(tmp_path / "texts")
    with pytest.raises(InputError, match="expected a classifier of pictures"):
        hm.open_model(tmp_path / "texts", "digit-pictures", progress=False)


def test_a_picture_is_read_the_way_up_that_its_file_says(tmp_path):
    made = Image.fromarray(picture(3))
    exif = made.getexif()
    exif[0x0112] = 6  # to be turned by a quarter
    made.save(tmp_path / "turned.png", exif=exif)
    assert (read_picture(tmp_path / "turned.png") == np.rot90(picture(3), -1)).all()


def test_a_covered_patch_is_named_once():
    assert (
        covered("cats/1.png:3=r0c3") == covered(covered("cats/1.png:3=r0c3")) == "cats/1.png:3=grey"
    )
    assert covered("a=b.png:3") == "a=b.png:3=grey"
    assert covered("/step=2/a.png:3=r0c3") == "/step=2/a.png:3=grey"


def test_the_digits_place_is_marked_in_grids_of_other_sizes():
    drawn = next(drawn_pictures("test"))
    assert drawn.marks(4, 4).sum() == 1
    assert np.argwhere(drawn.marks(4, 4).reshape(4, 4)).tolist() == [[drawn.row, drawn.column]]
    assert drawn.marks(8, 8).sum() == 4
    assert drawn.marks(2, 2).sum() == 1
    assert drawn.marks(1, 1).all()


def test_a_small_vit_learns_the_digits_and_its_rollout_finds_them(tmp_path):
    folder = train_digit_vision(tmp_path / "vit", epochs=1)
    run = hm.open_model(folder, "digit-pictures", progress=False)
    test = run.corpus.splits["test"]
    batch = run.model.batch(test.texts, range(len(test)))
    accuracy = (run.model.logits(batch).argmax(1).numpy() == test.labels).mean()
    found = run.model.heat_maps(batch, [Map("rollout", 2, None)])[:, 0].argmax(1).numpy()
    marked = np.stack(test.rationale).argmax(1)
    assert accuracy > 0.5
    assert (found == marked).mean() > 0.9


def test_what_may_be_forwarded_holds_no_picture(model, pictures, tmp_path):
    run = hm.open_model(model, pictures, progress=False)
    audit = hm.audit(run, progress=False, minutes="all")
    audit.save(tmp_path / "own.html")
    audit.save(tmp_path / "anonymous.html", texts=False)
    assert "data:image/png" in (tmp_path / "own.html").read_text("utf-8")
    assert "data:image/png" not in (tmp_path / "anonymous.html").read_text("utf-8")
    assert "picture" not in without_texts(audit).tables["instances"].column_names


def test_names_of_files_are_no_texts_with_tags_in_them(model, tmp_path):
    (tmp_path / CLASSES[0]).mkdir()
    for number in range(3):
        Image.fromarray(picture(number)).save(tmp_path / CLASSES[0] / f"{number}<b>.png")
    corpus = hm.open_model(model, tmp_path, progress=False).corpus
    assert not [note for note in corpus.notes if "HTML" in note]


def test_names_of_files_in_any_script_are_no_texts_without_spaces(model, tmp_path):
    (tmp_path / CLASSES[0]).mkdir()
    Image.fromarray(picture(0)).save(tmp_path / CLASSES[0] / "这是一张很长很长的猫的图片.png")
    corpus = hm.open_model(model, tmp_path, progress=False).corpus
    assert len(corpus.splits["test"].tokens) == 1
    assert not [note for note in corpus.notes if "spaces" in note]


def test_pictures_in_a_folder_are_named_where_texts_are_expected(pictures):
    with pytest.raises(InputError, match="got pictures, which a classifier of pictures reads"):
        hm.load(pictures)


def test_a_picture_has_no_windows(model, pictures):
    with pytest.raises(InputError, match="--long-texts windows: an option of texts"):
        hm.open_model(model, pictures, long_texts="windows", progress=False)


GREY = picture(4)[..., 0].astype(np.int64)
OF_MODES = {
    "1": Image.fromarray(picture(4)).convert("1"),
    "L": Image.fromarray(picture(4)).convert("L"),
    "P": Image.fromarray(picture(4)).convert("P"),
    "CMYK": Image.fromarray(picture(4)).convert("CMYK"),
    "LA": Image.fromarray(picture(4)[..., :2], "LA"),
    "RGBA": Image.fromarray(np.dstack([picture(4), picture(5)[..., :1]])),
    "I;16": Image.fromarray((GREY * 257).astype(np.uint16)),
    "I": Image.fromarray((GREY * 257 - 30000).astype(np.int32)),
    "F": Image.fromarray((GREY * 1.7 - 90).astype(np.float32)),
}
NOTED = {
    **dict.fromkeys(["LA", "RGBA"], "transparency"),
    **dict.fromkeys(["I;16", "I", "F"], "more than 8 bits"),
}


def mode_of(picture):
    if not isinstance(picture, str):
        return picture.mode
    with Image.open(picture) as opened:
        return opened.mode


@pytest.mark.filterwarnings("ignore:.*pictures have")
def test_pictures_of_any_mode_are_read_as_transformers_pipeline_reads_them(tmp_path):
    pipe = hf.pipeline(
        "image-classification", model=plain_vision("vit"), image_processor=processor()
    )

    def loaded(pictures):
        answers = [
            {part["label"]: part["score"] for part in pipe(one, top_k=3)} for one in pictures
        ]
        return np.array([[answer[name] for name in CLASSES] for answer in answers])

    folder = tmp_path / "pictures" / CLASSES[0]
    folder.mkdir(parents=True)
    for mode, image in OF_MODES.items():
        if mode not in ("F", "I", "CMYK"):  # which PNG does not have
            image.save(folder / f"{len(list(folder.iterdir()))}.png")
    OF_MODES["CMYK"].save(folder / "x.jpg")
    files = [str(file) for file in sorted(folder.iterdir())]
    in_memory = hm.open_model(pipe, [*OF_MODES.values()], progress=False, out=tmp_path / "run")
    in_files = hm.open_model(pipe, tmp_path / "pictures", progress=False)
    for run, given in ((in_memory, [*OF_MODES.values()]), (in_files, files)):
        expected = loaded(given)
        texts = run.corpus.splits["test"].texts
        audited = run.model.logits(run.model.batch(texts, range(len(texts)))).softmax(-1)
        np.testing.assert_allclose(audited, expected, atol=1e-6)
        modes = [mode_of(one) for one in given]
        row = modes.index("I;16")
        explanation = run.explain(given[row])
        probabilities = explanation.to_dict()["probabilities"]
        np.testing.assert_allclose(probabilities, expected[row], atol=1e-6)
        assert ["more than 8 bits (mode I;16)" in note for note in explanation.notes] == [True]
        for note in NOTED.values():
            alike = sum(NOTED.get(mode) == note for mode in modes)
            told = [n for n in run.corpus.notes if note in n]
            assert sum(int(n.split(" of ")[0]) for n in told) == alike
            assert all(f" of {len(given)} pictures have " in n for n in told)
    assert hm.open_run(tmp_path / "run").corpus.notes == in_memory.corpus.notes


def test_pictures_in_no_folder_of_a_class_are_refused_by_where_they_lie(model, tmp_path):
    beside = tmp_path / "beside"
    beside.mkdir()
    Image.fromarray(picture(0)).save(beside / "one.png")
    with pytest.raises(InputError, match=r"got 1 pictures in the folder itself, such as one\.png"):
        hm.open_model(model, beside, progress=False)
    deep = tmp_path / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    Image.fromarray(picture(0)).save(deep / "two.png")
    with pytest.raises(InputError, match=r"1 pictures in b.c.d, such as two\.png, which is too"):
        hm.open_model(model, tmp_path / "a", progress=False)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="got none"):
        hm.open_model(model, tmp_path / "none", progress=False)


def test_pictures_of_other_kinds_are_read_as_transformers_reads_them(model, pictures, tmp_path):
    first = Image.fromarray(picture(2))
    for number, name in enumerate(("cat/a.tif", "dog/b.TIFF", "owl/c.bmp", "owl/d.webp")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        lossless = {"lossless": True} if name.endswith("webp") else {}
        Image.fromarray(picture(number)).save(tmp_path / name, **lossless)
    first.save(tmp_path / "cat" / "pages.tif", save_all=True, append_images=[first] * 2)
    with warned("1 of 5 pictures have several pages"):
        run = hm.open_model(model, tmp_path, progress=False)
    test = run.corpus.splits["test"]
    loaded = hf.pipeline("image-classification", str(model), top_k=None)
    audited = run.model.logits(run.model.batch(test.texts, range(5))).softmax(-1)
    for key, row in zip(test.keys, audited.tolist(), strict=True):
        with Image.open(tmp_path / key) as image:
            expected = {one["label"]: one["score"] for one in loaded(image)}
        assert dict(zip(run.model.classes, row, strict=True)) == pytest.approx(expected, abs=1e-5)


def test_an_image_folder_with_a_table_of_labels_is_refused_with_a_way_that_works(model, tmp_path):
    datasets = pytest.importorskip("datasets")
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        rows = [f"{i}.png,{CLASSES[i % 3]}" for i in range(6)]
        (tmp_path / split / "metadata.csv").write_text("\n".join(["file_name,label", *rows, ""]))
        for i in range(6):
            Image.fromarray(picture(i)).save(tmp_path / split / f"{i}.png")
    with refused(tmp_path, "6 pictures in", "imagefolder", "data_dir=", "metadata.csv"):
        hm.open_model(model, tmp_path, progress=False)
    # What load_dataset("imagefolder") returns; it leaves the tables open, which is an error here.
    files = [str(tmp_path / "test" / f"{i}.png") for i in range(6)]
    columns = {"image": files, "label": [CLASSES[i % 3] for i in range(6)]}
    part = datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image())
    read = datasets.DatasetDict({"train": part, "test": part})
    test = hm.open_model(model, read, progress=False).corpus.splits["test"]
    assert [CLASSES[i % 3] for i in range(6)] == [sorted(CLASSES)[i] for i in test.labels]


def test_checks_exports_progress_and_charts_speak_of_pictures(model, pictures, heedmap, tmp_path):
    checked = heedmap("check", str(model)).out
    assert "text" not in checked.replace("context", "")
    done = heedmap(
        "audit",
        "--model",
        model,
        "--data",
        pictures,
        "--out",
        tmp_path / "run",
        "--permutations",
        "3",
    )
    assert done.code == 0
    said = [line for line in done.err.splitlines() if "audit:" in line]
    assert said
    assert not any(re.search(r"\b(text|texts|words|tokens)\b", line) for line in said)
    assert heedmap("export", tmp_path / "run", "--out", tmp_path / "files").code == 0
    columns = (tmp_path / "files" / "columns.csv").read_text("utf-8")
    assert "the patch's place in the picture" in columns
    assert "One row per picture and patch" in (tmp_path / "files" / "about.csv").read_text("utf-8")
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert not re.search(r'"words, \d+%"', page)
    assert re.search(r'"patches, \d+%"', page)
