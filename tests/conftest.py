"""Shared by the tests: small corpora, small trained runs, the command in this process."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

# No test needs the network (test_network asks whether heedmap does), and no lookup should be waited for.
os.environ["HF_HUB_OFFLINE"] = "1"

# A shell lets its background jobs ignore Ctrl-C, and what they start too; tests send it to processes of theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if "HEEDMAP_SHAPES" in os.environ:
    import shapes

    shapes.install()

import numpy as np
import pytest
import torch
from tiny_transformers import reviews_classifier

from heedmap import cli
from heedmap.data.corpus import Corpus, Split
from heedmap.data.load import load
from heedmap.data.texts import Pair
from heedmap.data.vocabulary import Vocabulary
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.models.attention_classifier import TextClassifier
from heedmap.runs.run import Run
from heedmap.runs.train import train
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.terminal.displays import Display
from heedmap.terminal.progress import shown_by

# Tensors this small are slower on several threads, and much slower on shared cores. Processes that a test
# starts inherit this.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)

# No worker should start minutes of work when the others are done.
LONGEST_FIRST = ("test_kills.py", "test_docs.py", "test_memory.py")


def pytest_collection_modifyitems(items):
    """Put the modules that take longest in front; all others keep their order."""
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(autouse=True, scope="session")
def described():
    """Every column of every table that a test makes is described by its experiment."""
    table, seen = AuditContext.table, set()

    def checked(evidence, name):
        found = table(evidence, name)
        columns = registered()[name].columns
        for column in set(found.column_names) if columns.described else ():
            if (name, column) not in seen:
                assert columns.of(column) is not None, f"{name}: {column} is not described"
                seen.add((name, column))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AuditContext, "table", checked)
        yield


SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data sets, where available."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not on this machine")
    return folder


@pytest.fixture(scope="session")
def real_models():
    """The folder of real classifiers, where available."""
    folder = SHARED / "models"
    if not folder.is_dir():
        pytest.skip("the real models are not on this machine")
    return folder


@pytest.fixture(scope="session")
def minilm(real_models):
    """The folder of a small real classifier of film reviews."""
    return real_models / "minilm-sst2"


@pytest.fixture(scope="session", params=["stand-in", "real"])
def classifier(request, tmp_path_factory):
    """The folder of a text classifier: a tiny one, and the real one where available."""
    if request.param == "real":
        return request.getfixturevalue("minilm")
    return reviews_classifier(tmp_path_factory.mktemp("classifier"))


WORDS = [f"w{i:02d}" for i in range(40)]


def small_model(
    encoder="lstm", score="additive", normaliser="softmax", classes=2, seed=0, kind=TextClassifier
):
    """Make an untrained model over the words w00 ... w39."""
    settings = ModelSettings(
        encoder=encoder, score=score, normaliser=normaliser, embedding_size=12, hidden_size=16
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        names = [f"c{i}" for i in range(classes)]
        model = kind(settings, Vocabulary(WORDS), names)
    return model.eval().requires_grad_(False)


def random_texts(lengths, seed=0):
    """Make texts of known words with an unknown one now and then."""
    rng = np.random.default_rng(seed)
    return [[f"w{i:02d}" for i in rng.integers(0, 44, n)] for n in lengths]


def random_sentences(lengths, seed=0):
    """Make texts of sentences of one to nine words."""
    rng = np.random.default_rng(seed)
    return [
        [" ".join(words) for words in random_texts(rng.integers(1, 10, n), seed + i)]
        for i, n in enumerate(lengths)
    ]


def random_pairs(lengths, classes=3, seed=0):
    """Make texts with queries of one to four tokens; some allow only a part of the classes."""
    rng = np.random.default_rng(seed)
    queries = random_texts(rng.integers(1, 5, len(lengths)), seed + 1)
    allowed = rng.random((len(lengths), classes)) < 0.8
    allowed[:, 0] = True
    some = [row if i % 2 else None for i, row in enumerate(allowed)]
    texts = random_texts(lengths, seed)
    return [Pair(t, q, a) for t, q, a in zip(texts, queries, some, strict=True)]


def small_corpus(classes=2, size=60, seed=0):
    """Make texts whose label is the first word's class: quickly learned."""
    rng = np.random.default_rng(seed)
    splits = {}
    for name, count in (("train", size), ("dev", size // 3), ("test", size // 3)):
        labels = np.arange(count) % classes
        tokens = [
            [f"mark{label}", *(WORDS[i] for i in rng.integers(0, 40, rng.integers(1, 9)))]
            for label in labels
        ]
        tokens[0] = tokens[0][:1]  # a text of one token
        tokens[1] = tokens[1][:2]  # and one of two
        splits[name] = Split([f"{name}-{i}" for i in range(count)], tokens, labels.astype(np.int64))
    return Corpus("small", [str(c) for c in range(classes)], splits, DataSettings(source="small"))


def small_pairs(size=60, seed=0, candidates=True):
    """Make texts that say where three things are, with queries about one of them: quickly learned.

    Some allow only a part of the places. The first text has one token, the second two.
    """
    rng = np.random.default_rng(seed)
    places, things = ["den", "hut", "inn", "spa"], ["ant", "bee", "cat"]
    splits = {}
    for name, count in (("train", size), ("dev", size // 3), ("test", size // 3)):
        at, asked = rng.integers(0, 4, (count, 3)), rng.integers(0, 3, count)
        asked[:2] = 0
        order = [rng.permutation(3) for _ in range(count)]
        order[:2] = [np.arange(3)] * 2
        tokens = [
            [word for k in o for word in (things[k], "in", places[w[k]], "now")][2 * (i < 2) :]
            for i, (o, w) in enumerate(zip(order, at, strict=True))
        ]
        gold = [
            np.repeat(o == a, 4)[2 * (i < 2) :]
            for i, (o, a) in enumerate(zip(order, asked, strict=True))
        ]
        tokens[0], tokens[1] = tokens[0][:1], tokens[1][:2]
        gold[0], gold[1] = gold[0][:1], gold[1][:2]
        labels = at[np.arange(count), asked]
        allowed = rng.random((count, 4)) < 0.7
        allowed[np.arange(count), labels] = True
        allowed[::2] = True
        splits[name] = Split(
            [f"{name}-{i}" for i in range(count)],
            tokens,
            labels.astype(np.int64),
            gold,
            [["where", "is", things[a]][: 1 + 2 * (i != 2)] for i, a in enumerate(asked)],
            allowed if candidates else None,
        )
    return Corpus("small-pairs", places, splits, DataSettings(source="small-pairs"))


def contents(folder):
    """Return the bytes of every file in a folder."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


def stamped(folder):
    """Return the bytes of every file in a folder, and when files and folders were last written."""
    files = contents(folder)
    names = {path.relative_to(folder): path for path in Path(folder).rglob("*")}
    return {name: (path.lstat().st_mtime_ns, files.get(name)) for name, path in names.items()}


@pytest.fixture(scope="session")
def small_run() -> Run:
    """A model trained for a moment on the small corpus, in memory."""
    return train(
        small_corpus(), encoder="lstm", embedding_size=12, hidden_size=16, epochs=3, min_df=1
    )


@pytest.fixture(scope="session")
def reviews() -> Corpus:
    """The embedded corpus."""
    return load("reviews")


class _Watcher(Display):
    def __init__(self, move, step, note):
        self.moved, self.stepped, self.note = move, step, note

    def move(self, done, text, left):
        self.moved(done, text)

    def line(self, text, seconds):
        if (found := re.search(r"([a-z ]+) \(\d+ of \d+\)$", text)) is not None:
            self.stepped(found[1].strip().replace(" ", "_"))


def watched(move=lambda done, text: None, step=lambda name: None, note=lambda text: None):
    """A block whose work calls `move` with every move, `step` with each planned step, `note` with a note."""
    return shown_by(_Watcher(move, step, note))


@pytest.fixture
def heedmap(monkeypatch, capsys):
    """The command, run in this process: heedmap("audit", ...) gives code, out and err.

    However slow the machine, no line of progress is among them.
    """

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["heedmap", *map(str, arguments)])
        code = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.showwarning", lambda *a, **k: None)
            patch.setattr("heedmap.terminal.displays.QUIET_FOR", 3600.0)
            try:
                cli.main()
            except SystemExit as stop:
                code = stop.code or 0
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def csv_file(tmp_path):
    """A small CSV with a learnable label, as a user might bring it."""
    path = tmp_path / "texts.csv"
    rng = np.random.default_rng(0)
    lines = ["text,label"]
    for i in range(90):
        words = " ".join(WORDS[j] for j in rng.integers(0, 40, 5))
        lines.append(f"{'good' if i % 2 else 'bad'} {words},{'pos' if i % 2 else 'neg'}")
    path.write_text("\n".join(lines) + "\n")
    return path


QUICK = ("--encoder", "average", "--epochs", "1", "--embedding-size", "8", "--hidden-size", "8")

HOLD = """
import sys
from pathlib import Path
from heedmap.files import locking
if sys.argv[2] == "elsewhere":
    locking.fcntl = None
with locking.sharing(sys.argv[2] == "shared"), locking.writing(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def hold():
    """hold(folder): another process writes in a folder, until a line is sent to it or it is killed."""
    started = []

    def start(folder, how="folder"):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder), how],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
