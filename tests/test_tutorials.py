"""The tutorials can be followed: their commands parse, their runs are made before they are used."""

import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from heedmap.cli.main import app

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
RUN = re.compile(r"runs/[\w-]+")


def code(page, language):
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def commands(page):
    """The commands that a page's console blocks type."""
    blocks = (block.replace("\\\n", " ") for block in code(page, "console"))
    lines = [line for block in blocks for line in block.splitlines()]
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [shlex.split(line, comments=True)[1:] for line in typed if line.startswith("heedmap ")]


def refusal(arguments):
    """Return why a command is refused before it runs, None if it is not; nothing is run."""
    command, context, name = get_command(app), None, "heedmap"
    try:
        while True:
            context = command.make_context(name, list(arguments), parent=context)
            if not isinstance(command, TyperGroup):
                return None
            name, command, arguments = command.resolve_command(context, list(arguments))
    except Exception as error:
        if not type(error).__module__.startswith(("click", "typer")):
            raise
        return None if type(error).__name__ == "NoArgsIsHelpError" else error.format_message()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_command_of_a_console_block_parses(page):
    for arguments in commands(page):
        assert refusal(arguments) is None, shlex.join(arguments)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("audit --dta reviews", "No such option: --dta"),
        ("audit --data reviews --encoder bert", "got 'bert'"),
        ("explain", "Missing argument 'RUN|MODEL'"),
        ("explane runs/mine x", "No such command 'explane'"),
        ("reproduce snel", "No such command 'snel'"),
        ("reproduce snell --sedes 2", "No such option: --sedes"),
    ],
)
def test_a_wrong_command_does_not_parse(line, why):
    assert why in refusal(shlex.split(line))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_python_blocks_compile(page):
    for block in code(page, "python"):
        assert compile(block, str(page), "exec")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_run_is_made_before_it_is_used(page):
    made, unnamed = set(), ["runs/pictures"]
    for arguments in commands(page):
        out = arguments[arguments.index("--out") + 1] if "--out" in arguments else None
        used = {run for word in arguments for run in RUN.findall(word)} - {out}
        assert used <= made, arguments
        made.add(out)
        if out is None and "--data" in arguments:  # named by its data
            unnamed.append(f"runs/{Path(arguments[arguments.index('--data') + 1]).stem}-")
    written = set(RUN.findall(page.read_text(encoding="utf-8")))
    assert all(run in made or run.startswith(tuple(unnamed)) for run in written)


def test_every_tutorial_is_on_the_page_of_tutorials():
    text = (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")
    (toctree,) = re.findall(r"^```\{toctree\}\n:hidden:\n(.*?)^```", text, re.M | re.S)
    names = {page.stem for page in TUTORIALS} - {"index"}
    assert set(toctree.split()) == names
    assert all(f"({name}.md)" in text for name in names)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*bewertungen")
def test_the_tutorial_of_a_spreadsheet_can_be_followed(heedmap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "tutorials" / "spreadsheet.md"
    make, mend, _ = code(page, "python")
    exec(make, {})
    exec(mend, {})
    guessed, _, *others = commands(page)  # the second one is interrupted there
    said = heedmap(*guessed)
    assert said.code == 2
    assert said.err.splitlines()[-1] in page.read_text(encoding="utf-8")
    briefly = shlex.split("--encoder average --epochs 1 --train-texts 200 --instances 6")
    for arguments in others:
        done = heedmap(*arguments, *(briefly if arguments[0] == "audit" else []))
        assert done.code == 0, (arguments, done.err)
    assert "großartig" in done.out
