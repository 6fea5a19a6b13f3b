"""Bags of vectors: how they are read, and that everything downstream takes them for texts."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from wording import refused

import heedmap as hm
from heedmap.data.item_vectors import ItemVectors, StoredBag
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.load import load
from heedmap.report.place_figures import place_figures, raster

WIDTH = 4


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(3 + i % 3, WIDTH)) + 2 * (i % 2)).astype(np.float32) for i in range(40)
    ]


def write_labels(folder, count=40, head="slide_id,label", name="labels.csv"):
    rows = "".join(f"s{i},{'tumour' if i % 2 else 'normal'}\n" for i in range(count))
    (folder / name).write_text(f"{head}\n{rows}")


def write(folder, arrays, kind):
    for i, array in enumerate(arrays):
        path = folder / f"s{i}.{kind}"
        places = np.arange(2 * len(array)).reshape(-1, 2)
        if kind == "npy":
            np.save(path, array)
        elif kind == "safetensors":
            save_file({"features": array, "coords": places}, path)
        else:
            h5py = pytest.importorskip("h5py")
            with h5py.File(path, "w") as file:
                file["features"], file["coords"] = array, places


@pytest.mark.parametrize("kind", ["npy", "safetensors", "h5"])
def test_a_folder_of_files_is_read_as_bags(tmp_path, arrays, kind):
    write(tmp_path, arrays, kind)
    write_labels(tmp_path)
    corpus = load(str(tmp_path))
    assert corpus.classes == ["normal", "tumour"]
    assert sum(map(len, corpus.splits.values())) == 40
    vocabulary = ItemVocabulary(corpus.vectors)
    for split in corpus.splits.values():
        for key, tokens in zip(split.keys, split.tokens, strict=True):
            rows = vocabulary.encode(tokens)[1:-1] - 4
            assert np.array_equal(corpus.vectors.vectors(rows), arrays[int(key[1:])])
            assert vocabulary.decode(rows + 4) == tokens
            assert all(token in vocabulary for token in tokens)
            places = corpus.vectors.coordinates(tokens)
            assert (places is None) == (kind == "npy")
            assert places is None or places[1].tolist() == [2, 3]
    assert load(str(tmp_path)).fingerprint() == corpus.fingerprint()


def test_a_parquet_file_has_an_item_in_each_row(tmp_path, arrays):
    order = np.random.default_rng(1).permutation(sum(map(len, arrays)))
    bag_of = np.repeat(np.arange(40), list(map(len, arrays)))[order]
    rows = np.concatenate(arrays)[order]
    table = {
        "slide_id": [f"s{i}" for i in bag_of],
        "features": list(rows),
        "label": ["tumour" if i % 2 else "normal" for i in bag_of],
        "x": np.arange(len(order)),
        "y": np.zeros(len(order)),
    }
    path = tmp_path / "items.parquet"
    pq.write_table(pa.table(table), path, row_group_size=7)
    corpus = load(str(path))
    for key, tokens in zip(corpus.splits["test"].keys, corpus.splits["test"].tokens, strict=True):
        found = corpus.vectors.vectors(np.array([corpus.vectors.row(name) for name in tokens]))
        assert np.array_equal(found, rows[bag_of == int(key[1:])])
        assert np.array_equal(
            corpus.vectors.coordinates(tokens)[:, 0], np.flatnonzero(bag_of == int(key[1:]))
        )
    # Beside a table of labels it needs none of its own.
    (tmp_path / "bags").mkdir()
    del table["label"]
    pq.write_table(pa.table(table), tmp_path / "bags" / "items.parquet")
    write_labels(tmp_path / "bags")
    assert load(str(tmp_path / "bags")).class_counts() == corpus.class_counts()
    pq.write_table(pa.table(table), path)
    with refused(str(path), "label", "labels.csv"):
        load(str(path))


def test_bags_in_memory_are_read_as_those_in_files(tmp_path, arrays):
    write(tmp_path, arrays, "npy")
    write_labels(tmp_path)
    names, labels = [f"s{i}" for i in range(40)], ["normal", "tumour"] * 20
    held = hm.load_bags(arrays, labels, names=names, coordinates=[a[:, :2] for a in arrays])
    read = load(str(tmp_path))
    assert held.splits["test"].tokens == read.splits["test"].tokens
    tokens = held.splits["test"].tokens[0]
    rows = np.array([held.vectors.row(name) for name in tokens])
    assert np.array_equal(held.vectors.vectors(rows), read.vectors.vectors(rows[:]))
    assert np.allclose(held.vectors.coordinates(tokens), held.vectors.vectors(rows)[:, :2])
    with refused("labels.csv", "out"):
        hm.train(held, out=tmp_path / "run", progress=False)


def test_padded_bags_are_refused_and_masked_arrays_are_read_as_masked(tmp_path, arrays):
    labels, longest = ["normal", "tumour"] * 20, max(map(len, arrays))
    fill = [longest - len(array) for array in arrays]
    held = hm.load_bags(arrays, labels, coordinates=[a[:, :2] for a in arrays])
    for before in (False, True):
        sides = [(n, 0) if before else (0, n) for n in fill]
        padded = np.stack([np.pad(a, (n, (0, 0))) for a, n in zip(arrays, sides, strict=True)])
        is_padding = (
            np.stack(
                [
                    np.pad(np.zeros(len(a)), n, constant_values=1)
                    for a, n in zip(arrays, sides, strict=True)
                ]
            )
            > 0
        )
        with refused("bags", "40 instances", "items of 0", "cut it off", "masked"):
            hm.load_bags(padded, labels)
        masked = np.ma.array(padded, mask=np.tile(is_padding[..., None], padded.shape[2]))
        with pytest.warns(UserWarning, match=f"{sum(fill)} of {40 * longest} items are padding"):
            read = hm.load_bags(masked, labels, coordinates=padded[..., :2])
        assert read.fingerprint() == held.fingerprint()
        assert all(
            np.array_equal(one.vectors.coordinates(tokens), held.vectors.coordinates(tokens))
            for one in read.splits.values()
            for tokens in one.tokens
        )
        folder = tmp_path / str(before)
        folder.mkdir()
        write(folder, list(padded), "npy")
        write_labels(folder)
        with refused("s0.npy", "40 instances", "items of 0"):
            load(str(folder))
    few = [*arrays[:39], np.pad(arrays[39], ((0, 1), (0, 0)))]
    with pytest.warns(
        UserWarning, match="1 of 40 instances begin or end with items of 0, which count"
    ):
        hm.load_bags(few, labels)


def test_bags_without_a_label_and_labels_without_a_bag_are_counted(tmp_path, arrays):
    write(tmp_path, arrays[:39], "npy")
    write_labels(tmp_path)
    np.save(tmp_path / "other.npy", arrays[0])
    left_out = load(str(tmp_path)).left_out
    assert left_out == {"label of a bag without a file": 1, "bags without a label": 1}


def test_clams_layout_and_its_splits(tmp_path, arrays):
    pytest.importorskip("h5py")
    (tmp_path / "h5_files").mkdir()
    (tmp_path / "pt_files").mkdir()
    write(tmp_path / "h5_files", arrays, "h5")
    rows = "".join(f"p{i},s{i}.svs,{i % 2},{['train', 'dev', 'test'][i % 3]}\n" for i in range(40))
    (tmp_path / "dataset.csv").write_text(f"case_id,slide_id,label,split\n{rows}")
    corpus = load(str(tmp_path))
    assert corpus.splits["test"].keys == [f"s{i}" for i in range(40) if i % 3 == 2]


def broken(tmp_path, arrays, name):
    if name == "pickled":
        (tmp_path / "s0.pt").write_bytes(pickle.dumps([1]))
        return write_labels(tmp_path)
    if name != "no table":
        write_labels(tmp_path)
    if name == "two tables":
        (tmp_path / "labels.csv").rename(tmp_path / "a.csv")
        write_labels(tmp_path, name="b.csv")
    if name == "twice":
        with (tmp_path / "labels.csv").open("a") as file:
            file.write("s0,normal\n")
    if name == "no such bags":
        arrays = arrays[:1]
        return np.save(tmp_path / "z.npy", arrays[0])
    write(tmp_path, arrays, "npy")
    if name == "another width":
        np.save(tmp_path / "s1.npy", np.zeros((2, 7), dtype=np.float32))
    if name == "flat":
        np.save(tmp_path / "s1.npy", np.zeros(2, dtype=np.float32))
    if name == "empty":
        np.save(tmp_path / "s1.npy", np.zeros((0, WIDTH), dtype=np.float32))
    if name == "objects":
        np.save(tmp_path / "s1.npy", np.array([["a", "b"]]))
    if name == "damaged":
        (tmp_path / "s1.npy").write_bytes(b"nothing")
    if name == "damaged tensors":
        (tmp_path / "s1.npy").unlink()
        (tmp_path / "s1.safetensors").write_bytes(b"nothing at all here")
    if name == "two files":
        save_file({"features": arrays[0]}, tmp_path / "s1.safetensors")
    if name == "places":
        (tmp_path / "s1.npy").unlink()
        parts = {"features": arrays[1], "coords": np.zeros((1, 2))}
        save_file(parts, tmp_path / "s1.safetensors")
    if name == "flat with places":
        (tmp_path / "s1.npy").unlink()
        parts = {"features": np.zeros(2, dtype=np.float32), "coords": np.zeros((2, 2))}
        save_file(parts, tmp_path / "s1.safetensors")
    if name == "many arrays":
        (tmp_path / "s1.npy").unlink()
        save_file({"a": arrays[1], "b": arrays[1]}, tmp_path / "s1.safetensors")
    return None


CASES = {
    "pickled": ("s0.pt", "convert"),
    "no table": ("labels.csv", "none"),
    "two tables": ("a.csv", "b.csv"),
    "twice": ("two", "s0"),
    "no such bags": ("'z'", "none"),
    "another width": ("s1.npy", "4", "7"),
    "flat": ("s1.npy", "(2,)"),
    "flat with places": ("s1.safetensors", "a vector for each item", "(2,)"),
    "empty": ("s1.npy", "(0, 4)"),
    "objects": ("s1.npy", "numbers"),
    "damaged": ("s1.npy", "cannot be read"),
    "damaged tensors": ("s1.safetensors", "cannot be read"),
    "two files": ("s1.safetensors", "s1.npy"),
    "places": ("s1.safetensors", "coords", "(1, 2)"),
    "many arrays": ("s1.safetensors", "features", "a, b"),
}


@pytest.mark.parametrize("name", CASES)
def test_malformed_bags_get_one_line(tmp_path, arrays, name):
    broken(tmp_path, arrays, name)
    with refused(*CASES[name]):
        load(str(tmp_path))


def test_numbers_that_are_not_finite_are_refused_when_they_are_read(tmp_path, arrays):
    arrays[1][2, 0] = np.nan
    write(tmp_path, arrays, "npy")
    write_labels(tmp_path)
    corpus = load(str(tmp_path))
    with refused("s1.npy", "item 2", "finite"):
        corpus.vectors.vectors(np.arange(corpus.vectors.starts[-1]))


def test_a_table_of_labels_without_the_usual_columns_says_how_to_name_them(tmp_path, arrays):
    write(tmp_path, arrays, "npy")
    write_labels(tmp_path, head="patient,diagnosis")
    with refused("no id column", "no label column", "patient", "--id-column", "--label-column"):
        load(str(tmp_path))
    with refused("no label column", "--label-column", "in Python label="):
        load(str(tmp_path), id="patient")
    with refused("patient is read as the id", "--id-column", "--label-column"):
        load(str(tmp_path), id="patient", label="patient")
    corpus = load(str(tmp_path), id="patient", label="diagnosis")
    assert corpus.classes == ["normal", "tumour"]


@pytest.mark.parametrize("item", [0, 2])
def test_a_run_of_bags_with_numbers_that_are_not_finite_is_not_begun(tmp_path, arrays, item):
    arrays[39][item, 1] = np.inf
    write(tmp_path, arrays, "npy")
    write_labels(tmp_path)
    corpus = load(str(tmp_path))
    with refused("s39.npy", f"item {item}", "finite"):
        hm.train(corpus, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_few_bags_are_held_at_a_time(monkeypatch):
    read = []

    def bag(i):
        def vectors():
            read.append(i)
            return np.full((2, 3), i, dtype=np.float32)

        return StoredBag(2, vectors, b"", f"bag {i}")

    monkeypatch.setattr("heedmap.data.item_vectors.HELD", 60)  # two bags of 24 bytes
    vectors = ItemVectors({str(i): bag(i) for i in range(4)}, 3, in_memory=True)
    for order in ([0], [1], [0], [2], [0], [1], [3, 2, 0]):
        rows = 2 * np.array(order) + 1
        assert vectors.vectors(rows)[:, 0].tolist() == order
    assert read == [0, 1, 2, 1, 2, 3]
    assert pickle.loads(pickle.dumps(ItemVectors({}, 3, in_memory=True)))._held == {}


@pytest.mark.parametrize("name", ["digit-bags", "four_bags", "pos_neg", "adjacent_pairs"])
def test_the_deciding_items_of_embedded_bags_are_marked(name):
    corpus = load(name)
    for split in corpus.splits.values():
        digits = [[int(t.partition("=")[2]) for t in tokens] for tokens in split.tokens]
        for bag, marks, label in zip(digits, split.rationale, split.labels, strict=True):
            marked = {d for d, is_marked in zip(bag, marks, strict=True) if is_marked}
            held = set(bag)
            if name == "digit-bags":
                assert (marked, corpus.classes[label]) == (
                    (set(), "no nine") if 9 not in held else ({9}, "nine")
                )
            elif name == "four_bags":
                assert label == (8 in held) + 2 * (9 in held)
                assert marked == held & {8, 9}
            elif name == "pos_neg":
                assert label == (len(held & {4, 6, 8}) > len(held & {5, 7, 9}))
                assert marked == held & ({4, 6, 8} if label else {5, 7, 9})
            else:
                pairs = [{d, d + 1} for d in range(4) if {d, d + 1} <= held]
                assert label == bool(pairs)
                assert marked == set().union(*pairs)
        counts = np.bincount(split.labels)
        assert counts.min() == counts.max()
    vectors = corpus.vectors.vectors(np.arange(30))
    assert corpus.fingerprint() == load(name).fingerprint()
    assert vectors.min() == 0
    assert vectors.max() == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"min_df": 1}, "--min-df"),
        ({"embedding_size": 3}, "--embedding-size"),
        ({"score": "log_odds"}, "log_odds"),
        ({"score": "log_odds", "maps": "per-class"}, "log_odds"),
    ],
)
def test_what_is_of_words_is_refused_for_bags(options, named):
    with refused(named):
        hm.train(hm.load("four_bags"), progress=False, **options)


@pytest.mark.parametrize("tokenizer", ["sentences", "spaces"])
def test_bags_are_split_by_no_tokenizer(tmp_path, arrays, tokenizer):
    write(tmp_path, arrays, "npy")
    write_labels(tmp_path)
    for source in ("four_bags", str(tmp_path)):
        with refused(f"--tokenizer {tokenizer}", "bags", "leave it out"):
            hm.load(source, tokenizer=tokenizer)


def test_a_transformer_does_not_read_bags():
    with refused("four_bags", "transformer"):
        hm.fine_tune("nowhere", "four_bags", progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("maps", ["shared", "per-class"])
def test_a_run_on_bags_is_kept_opened_and_audited(tmp_path, arrays, maps):
    write(tmp_path, arrays, "npy")
    write_labels(tmp_path)
    corpus = hm.load(str(tmp_path))
    run = hm.train(corpus, maps=maps, epochs=2, out=tmp_path / "run", progress=False)
    opened = hm.open_run(tmp_path / "run")
    batches = [
        model.batch(opened.corpus.splits["test"].texts, range(8))
        for model in (run.model, opened.model)
    ]
    logits = [
        model.logits(batch) for model, batch in zip((run.model, opened.model), batches, strict=True)
    ]
    assert logits[0].equal(logits[1])
    audit = hm.audit(opened, progress=False)
    assert audit["permutation"].shape[0] == 8
    with refused("bags"):
        opened.explain("a text")
    with refused("bags"):  # no bag is read then
        hm.explain(tmp_path / "run", "a text")
    assert opened.explain(str(tmp_path / "s0.npy")).tokens == ["s0:0", "s0:1", "s0:2"]
    # Where the vectors have changed it is another run.
    np.save(tmp_path / "s0.npy", arrays[1])
    with refused("run", "not what it was"):
        hm.open_run(tmp_path / "run")


def test_a_raster_has_the_grid_of_the_places():
    # Three places in a row of patches of 256 pixels, and one a row below: two items share it.
    places = np.array([[0, 0], [256, 0], [512, 0], [0, 256], [0, 256]], dtype=float)
    cells = raster(places, np.array([0.1, 0.2, 0.4, 0.05, 0.25]))
    size = 1 / 3
    found = {(round(c["x"] / size), round(c["y"] / size)): c["weight"] for c in cells}
    assert found == {(0, 0): 0.1, (1, 0): 0.2, (2, 0): 0.4, (0, 1): 0.25}
    assert {round(c["strength"], 6) for c in cells} == {0.25, 0.5, 1.0, 0.625}
    assert all(c["x2"] - c["x"] == pytest.approx(size) for c in cells)
    many = np.stack(np.meshgrid(np.arange(90), np.arange(30)), -1).reshape(-1, 2).astype(float)
    cells = raster(many, np.arange(len(many), dtype=float))
    assert len({c["x"] for c in cells}) == 40
    assert max(c["weight"] for c in cells) == len(many) - 1
    assert len(raster(np.zeros((2, 2)), np.zeros(2))) == 1


@pytest.mark.slow
def test_the_report_draws_the_map_over_the_places(tmp_path, arrays):
    places = [np.stack([np.arange(len(a)), np.zeros(len(a))], 1) for a in arrays]
    corpus = hm.load_bags(arrays, ["a", "b"] * 20, coordinates=places)
    run = hm.train(corpus, epochs=1, progress=False)
    audit = hm.audit(run, permutations=2, progress=False)
    assert list(audit["instances"]["x"][0]) == [0, 1, 2]
    figure = place_figures(audit)[0]
    assert figure.key == "places"
    audit.save(tmp_path / "report.html")
    assert 'id="figure-places"' in (tmp_path / "report.html").read_text("utf-8")
    without = hm.train(hm.load_bags(arrays, ["a", "b"] * 20), epochs=1, progress=False)
    assert place_figures(hm.audit(without, permutations=2, progress=False)) == []
