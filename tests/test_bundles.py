"""The page's JavaScript in the package is what `make page` built from page/, also where there is no node."""

import hashlib
import re
from importlib.resources import files
from pathlib import Path

PAGE = Path(__file__).parents[1] / "page"
REPORT = files("heedmap.report")


def built():
    """The hashes that NOTICE names, by the file or folder."""
    return dict(
        re.findall(
            r"^\* (\S+): sha256 (\w{64})$", REPORT.joinpath("NOTICE").read_text("utf-8"), re.M
        )
    )


def test_every_bundle_is_as_it_was_built():
    bundles = {
        path.name: path.read_bytes() for path in REPORT.iterdir() if path.name.endswith(".js")
    }
    assert len(bundles) >= 3
    found = {name: hashlib.sha256(content).hexdigest() for name, content in bundles.items()}
    assert found == {name: digest for name, digest in built().items() if name != "page/"}


def test_the_bundles_were_built_from_these_sources():
    digest = hashlib.sha256()
    names = [f"src/{path.name}" for path in (PAGE / "src").iterdir()]
    for name in sorted([*names, "build.mjs", "package-lock.json"]):
        digest.update(f"{name}\0".encode() + (PAGE / name).read_bytes())
    assert digest.hexdigest() == built()["page/"], "run `make page`"
