"""The documents are true."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import WORDS
from eraser_files import eraser_folder
from made_translations import write_texts
from tiny_transformers import tiny_model, tiny_tokenizer

from heedmap.calibration import corpora, cue_families
from heedmap.experiments.levels import BANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    """Blocks of the README and of the page on transformers."""
    pages = README + (ROOT / "docs" / "transformers.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", pages, re.M | re.S)


def test_the_rules_of_the_verdict_are_written_down():
    text = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8")
    for bands in BANDS.values():
        for edge, level, words in bands:
            line = next(
                line
                for line in text.splitlines()
                if re.search(rf"(\d|below:) {re.escape(words)} \|", line)
            )
            assert line.rstrip(" |").endswith(level)
            if np.isfinite(edge):
                assert f"≥ {edge:g}" in line


def test_the_two_commands_of_the_readme_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.M):
        assert f"\n{target}:" in makefile


def test_few_files_are_in_no_room():
    assert len(list((ROOT / "src" / "heedmap").glob("*.py"))) <= 7


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with reviews.csv, SST, IMDB, movies, sentences and the classifier, as in the README."""
    rng = np.random.default_rng(0)
    rows = [
        f"{'lovely' if i % 2 else 'dreadful'} {' '.join(WORDS[j] for j in rng.integers(0, 40, 8))},{i % 2}"
        for i in range(160)
    ]
    (tmp_path / "reviews.csv").write_text("review,label\n" + "\n".join(rows) + "\n")
    for folder in ("SST", "IMDB"):
        (tmp_path / folder).mkdir()
        for name, part in (("train", rows[:24]), ("dev", rows[24:32]), ("test", rows[32:40])):
            text = "text,label\n" + "\n".join(part) + "\n"
            (tmp_path / folder / f"{name}.csv").write_text(text)
    asked = [
        f"{row.split(',')[0]},is it {'good' if i % 3 else 'bad'},{'yes' if i % 2 else 'no'}"
        for i, row in enumerate(rows)
    ]
    eraser_folder(tmp_path / "movies")
    (tmp_path / "sentences").mkdir()
    write_texts(tmp_path / "sentences", 40)
    (tmp_path / "questions.csv").write_text("passage,question,answer\n" + "\n".join(asked) + "\n")
    tiny_model().save_pretrained(tmp_path / "my-classifier")
    tiny_tokenizer().save_pretrained(tmp_path / "my-classifier")
    (tmp_path / "sweep.toml").write_text(
        'data = ["reviews.csv"]\nencoders = ["average"]\nseeds = [0, 1]\n'
        "[train]\nepochs = 1\nembedding_size = 8\n[audit]\ninstances = 12\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_of_the_readme_is_in_a_block_that_is_run():
    fences = re.findall(r"^```(\w*)\n(.*?)^```", README, re.M | re.S)
    assert not [
        code for kind, code in fences if kind != "sh" and re.search("^heedmap ", code, re.M)
    ]


# What takes long is given more options: fewer texts and epochs on the same way through.
BRIEFLY = {
    "audit --model": "--instances 6",
    "audit --data reviews --out": "--encoder average --epochs 1 --train-texts 200 --instances 12",
    "audit --data reviews.csv": "--encoder average --instances 12",
    "audit --run": "--instances 12",
    "figures runs/mine": "--only permutation",
    "figures runs/cnn": "--only permutation",
    "audit --data movies": "--encoder average --epochs 1",
    "debate --data": "--parts serrano-smith",
    "calibrate": "--seeds 1 --workers 1",
    "retrain --run": "--seeds 2 --lambdas 0.01 --adversary-epochs 1",
    "retrain deception": "--seeds 2 --penalties 1 --forbidden lovely",
    "train --data reviews.csv --encoder average": "--epochs 1 --embedding-size 8",
    "train --data babi_qa1": "--train-texts 200 --test-texts 50",
    "reproduce jain-wallace sst": "--epochs 1 --instances 6",
    "reproduce brunner sst": "--epochs 1 --train-texts 8 --test-texts 4 --attributed-texts 2 --directions 2",
    "reproduce drozdyuk --data reviews.csv": "--seeds 2 --epochs 1 --adversary-epochs 1 --activations softmax",
    "reproduce drozdyuk sst": "--epochs 2 --adversary-epochs 1",
    "reproduce drozdyuk imdb": "--seeds 1 --epochs 1 --adversary-epochs 1 --train-texts 20 --test-texts 10",
    "reproduce wiegreffe-pinter sst": "--epochs 1 --seeds 2 --adversary-epochs 1 --lambdas 0.01",
    "reproduce pruthi pronoun": "--seeds 2 --epochs 1 --train-texts 100 --test-texts 30 --models embedding",
    "reproduce pruthi copy": "--seeds 2 --epochs 1 --penalties 0.1",
    "reproduce clark --model": "--train-sentences 20 --test-sentences 10 --segments 2 --seeds 1",
    "reproduce snell classification": "--seeds 2 --steps 20 --train-texts 100 --test-texts 30",
    "reproduce snell copying": "--seeds 2 --steps 200 --variant-seeds 0",
    "reproduce lu reverse": "--seeds 1 --updates 3 --train-pairs 60 --fusions none,annealed",
    "reproduce survey --data": "--epochs 1 --train-texts 200 --test-texts 50 --encoders average --sizes 8 "
    "--seeds 2 --adversary-texts 4 --train-pairs 50 --pair-epochs 1",
    "reproduce vashishth compare": "--seeds 2 --epochs 1",
    "reproduce serrano-smith imdb": "--epochs 1 --train-texts 20 --models han-none,flan-none",
}


def documented():
    """Blocks of commands, in the README and in the pages of docs/, each of which stands on its own."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        found = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        for number, block in enumerate(found, start=1):
            lines = [line.split("#")[0].strip() for line in block.splitlines()]
            commands = [line.removeprefix("heedmap ") for line in lines if line[:8] == "heedmap "]
            if commands:
                # What other pages show runs in the tests of its command, too.
                slow = (
                    "slow" if page.stem in ("README", "input", "bags", "arrays") else "exhaustive"
                )
                marks = getattr(pytest.mark, slow)
                yield pytest.param(commands, id=f"{page.stem}-{number}", marks=marks)


def brief(command):
    return next((start for start in BRIEFLY if command.startswith(start)), "")


def test_what_is_made_brief_is_documented():
    commands = [command for block in documented() for command in block.values[0]]
    assert {brief(command) for command in commands} == {*BRIEFLY, ""}


@pytest.fixture
def few_plants(monkeypatch):
    """Two families for one encoder each, for which a test can wait: by hand, and in a user's texts."""
    by_hand, written = (
        replace(one, makers={encoder: one.makers[encoder]}, times=1)
        for one, encoder in ((cue_families.FAMILIES[0], "by hand"), (corpora.FAMILIES[0], "none"))
    )
    monkeypatch.setattr("heedmap.calibration.families.MODULES", ("cue_families", "corpora"))
    monkeypatch.setattr(cue_families, "FAMILIES", (by_hand,))
    monkeypatch.setattr(corpora, "FAMILIES", (written,))


@pytest.mark.filterwarnings("ignore:.*too few to choose thresholds")
@pytest.mark.usefixtures("few_plants")
@pytest.mark.parametrize("commands", [*documented()])
def test_documented_commands_run(heedmap, desk, commands):
    for command in commands:
        done = heedmap(*shlex.split(f"{command} {BRIEFLY.get(brief(command), '')}"))
        assert done.code == 0, (command, done.err)


@pytest.mark.slow
@pytest.mark.parametrize("door", ["hm.train(", "hm.open_model("])
def test_the_python_of_the_readme_runs(desk, capsys, door):
    (code,) = (block for block in blocks("python") if door in block)
    assert "hm.audit(" in code
    few = Path("reviews.csv").read_text().splitlines()[:61]
    Path("reviews.csv").write_text("\n".join(few))
    exec(compile(code, "README.md", "exec"), {})
    assert "Should you heed the heat map?" in capsys.readouterr().out
