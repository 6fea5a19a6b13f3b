"""An option is a field of its settings; commands and functions are made from it."""

import inspect

import pytest
import typer
from typer.testing import CliRunner
from wording import refused

import heedmap as hm
from heedmap.keywords import split, takes
from heedmap.settings.audit import AuditSettings
from heedmap.settings.base import OptionSubset, Settings, option
from heedmap.settings.data import RAW_TEXTS, TOKENS
from heedmap.settings.models import ModelSettings, TransformerSettings
from heedmap.settings.training import TrainSettings
from heedmap.terminal import options as opt


class Bread(Settings):
    grain: str = option("Of the flour.", "rye")
    minutes: int = option("In the oven.", 40, shown="40; rolls 15", also="time")
    hidden: int = 3


class Pan(Settings):
    minutes: int = option("To heat it.", 5)
    size: float = option("Across.", 20.0)


def run(*arguments, groups=(Bread, Pan)):
    got = []
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @opt.with_options(*groups)
    def bake(given: opt.Given, loaves: int = 1) -> None:
        """Bake."""
        got.append((given, loaves))

    done = CliRunner().invoke(app, list(arguments))
    return done, got


def test_a_field_is_an_option_with_its_help_and_its_default():
    done, _ = run("--help")
    text = " ".join(done.output.split())
    assert "--grain" in text
    assert "Of the flour. [rye]" in text
    assert "In the oven. [40; rolls 15]" in text
    assert "--hidden" not in text
    assert text.count("--minutes") == 1, "a field of two settings is one option"


def test_only_what_was_given_is_passed_on_and_to_every_settings_that_has_it():
    _, ((given, loaves),) = run("--time", "7", "--loaves", "2")
    assert (given.values, loaves) == ({"minutes": 7}, 2)
    assert given.of(Bread) == given.of(Pan) == {"minutes": 7}
    _, ((given, _),) = run("--size", "3")
    assert (given.of(Bread), given.of(Pan)) == ({}, {"size": 3.0})


def test_what_a_way_has_no_use_for_is_refused_by_its_settings():
    _, ((given, _),) = run("--grain", "oat", "--size", "3")
    given.allow(Bread, Pan, of="anything")
    with refused("--size", "a stone", "leave it out"):
        given.allow(Bread, of="a stone")
    with refused("--grain, --size", "a stone"):
        given.allow(OptionSubset(Bread, "grain"), of="a stone")


@pytest.mark.parametrize(
    ("function", "groups"),
    [
        (hm.load, (TOKENS,)),
        (hm.train, (ModelSettings, TrainSettings)),
        (hm.open_model, (RAW_TEXTS, TransformerSettings)),
        (hm.audit, (AuditSettings,)),
    ],
)
def test_a_function_shows_the_fields_as_its_keywords(function, groups):
    shown = inspect.signature(function).parameters
    for group in groups:
        for name, field in group.options().items():
            assert name in shown
            assert shown[name].default in (None, field.default)
            assert f"{name}: {field.description}" in function.__doc__
    assert "{options}" not in function.__doc__


def test_a_keyword_that_there_is_not_is_a_type_error_with_those_there_are():
    @takes(Bread)
    def bake(**settings):
        return split("bake", settings, Bread)

    assert bake(grain=None, minutes=3) == [{"minutes": 3}], "None is not given"
    with refused("bake()", "'hidden'", "grain, minutes", kind=TypeError):
        bake(hidden=1)


@pytest.mark.parametrize("call", [hm.load, hm.train, hm.audit])
def test_the_library_refuses_a_misspelt_keyword(call, small_run):
    first = {hm.load: "reviews", hm.train: small_run.corpus, hm.audit: small_run}[call]
    with refused(f"{call.__name__}()", "'sede'", "seed", kind=TypeError):
        call(first, sede=1)
