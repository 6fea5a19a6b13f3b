"""What is installed is all that is needed, and says what it is."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from made_translations import write_tables, write_texts
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools.config.pyprojecttoml import read_configuration

import heedmap as hm

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "heedmap"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = {
    extra: {canonicalize_name(Requirement(line).name) for line in lines}
    for extra, lines in PROJECT["optional-dependencies"].items()
}
USED = EXTRAS.keys() - {"all", "dev", "docs"}  # by heedmap itself
ENGINES = {"dask", "slurm", "ray"}  # for who has such a cluster: `all` leaves them out
OPTIONAL = {name: extra for extra in USED for name in EXTRAS[extra]}
TREES = [ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")]


def imported(nodes):
    """The packages that these nodes import, as they are named where they are installed from."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    tops = {name.split(".")[0] for name in names} - {"heedmap"} - sys.stdlib_module_names
    tops.discard("IPython")  # a notebook has it, and only there is it asked for
    homes = packages_distributions()
    return {canonicalize_name(home) for top in tops for home in set(homes.get(top, [top]))}


def test_the_version_is_written_in_one_place_and_the_citation():
    assert "version" not in PROJECT
    configuration = read_configuration(ROOT / "pyproject.toml")
    assert configuration["project"]["version"] == hm.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == hm.__version__
    assert (citation["cff-version"], citation["license"]) == ("1.2.0", PROJECT["license"])
    assert [author["name"] for author in citation["authors"]] == [PROJECT["authors"][0]["name"]]


def test_every_file_that_is_no_module_is_installed_too():
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]["heedmap"]
    files = {path for path in PACKAGE.rglob("*") if path.is_file()}
    modules = {path for path in files if path.suffix == ".py" or "__pycache__" in path.parts}
    assert {path for pattern in patterns for path in PACKAGE.glob(pattern)} == files - modules


def test_every_import_is_of_a_declared_package_and_no_declared_one_is_unused():
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert not declared & set(OPTIONAL)
    assert imported(node for tree in TREES for node in ast.walk(tree)) == declared | set(OPTIONAL)
    assert EXTRAS["all"] == {"heedmap"}
    assert Requirement(*PROJECT["optional-dependencies"]["all"]).extras == USED - ENGINES


def test_shapes_are_of_classes_as_numpy_2_5_wants_them():
    """Its `NDArray[...]` is an alias on Python 3.12, of which jaxtyping raises TypeError at import."""
    shapes = re.compile(r"\b(?:Float|Int|Bool|Shaped)\[NDArray\b")
    found = [path.name for path in PACKAGE.rglob("*.py") if shapes.search(path.read_text("utf-8"))]
    assert found == []


def test_optional_packages_are_imported_in_functions_after_a_check_that_names_their_extra():
    assert not imported(node for tree in TREES for node in tree.body) & set(OPTIONAL)
    homes = packages_distributions()
    checked = {
        (canonicalize_name(homes.get(package, [package])[0]), extra)
        for tree in TREES
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check_installed"
        for package, extra in [[argument.value for argument in node.args[:2]]]
    }
    assert checked == set(OPTIONAL.items())


def test_every_package_of_an_extra_has_an_exact_version():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {canonicalize_name(line.split("==")[0]) for line in lines}
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert declared.union(*EXTRAS.values()) - {"heedmap"} <= pinned


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("datasets", "hub", "audit --data some/name"),
        ("datasets", "hub", "reproduce snell translation --data some/name"),
        ("gensim", "papers", "reproduce serrano-smith --data reviews"),
        ("sacrebleu", "papers", "reproduce snell translation --data texts"),
        ("sacrebleu", "papers", "reproduce lu texts --data texts"),
        ("sacrebleu", "papers", "reproduce pruthi translation --data tables --links links:en-de"),
    ],
)
def test_a_missing_optional_package_is_asked_for_before_anything_is_written(
    heedmap, monkeypatch, tmp_path, package, extra, command
):
    (tmp_path / "texts").mkdir()
    (tmp_path / "tables").mkdir()
    write_texts(tmp_path / "texts")
    write_tables(tmp_path / "tables")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    done = heedmap(*command.split(), "--out", "run")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.endswith(
        f'needs the package {package}, which is not installed; pip install "heedmap[{extra}]"'
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables", "texts"]
