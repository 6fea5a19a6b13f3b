"""Use a wheel as somebody who installed it: python scripts/try_wheel.py dist/heedmap-*.whl

It gets an environment of its own, with the packages that it requires and no others, and audits from another
folder. The packages are links to those of the environment that runs this script: nothing is downloaded.
"""

import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

COMMANDS = {
    "--version": 0,
    "--help": 0,
    "audit --data reviews --encoder average --epochs 1 --instances 10 --out run": 0,
    "export run --format jsonl --without-texts": 0,
    "export run --format xlsx": 2,  # needs a package that only an extra brings
    "card run --format md": 0,
    "reproduce serrano-smith --data reviews": 2,  # needs a package that only an extra brings
}


def add_required(package: Distribution, extras: set[str], found: dict[str, Distribution]) -> None:
    """Add to `found` what a package requires with these extras, and what that requires, by name."""
    for requirement in map(Requirement, package.requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            new = requirement.name not in found
            required = found.setdefault(requirement.name, distribution(requirement.name))
            if new or requirement.extras:
                add_required(required, requirement.extras, found)


def link(package: Distribution, site: Path) -> None:
    """Link a package of this environment into the site-packages of another."""
    for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(package.locate_file(top))))


def install(wheel: Path, env: Path) -> Path:
    """Make an environment with a wheel and what it requires; return the path of its command."""
    venv.create(env, symlinks=True)
    command = env / "bin" / "heedmap"
    pip = (sys.executable, "-m", "pip", "--python", str(env / "bin" / "python"))
    subprocess.run([*pip, "install", "--quiet", "--no-deps", str(wheel)], check=True)
    (site,) = (env / "lib").glob("python*/site-packages")
    (package,) = distributions(name="heedmap", path=[str(site)])
    required: dict[str, Distribution] = {}
    add_required(package, set(), required)
    for each in required.values():
        link(each, site)
    return command


def main() -> None:
    """Run the commands; stop at the first with another exit code than expected."""
    with TemporaryDirectory() as folder:
        heedmap = install(Path(sys.argv[1]).resolve(), Path(folder) / "env")
        for command, expected in COMMANDS.items():
            done = subprocess.run(
                [str(heedmap), *command.split()], cwd=folder, env={**os.environ, "PYTHONPATH": ""},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode != expected:
                sys.exit(f"heedmap {command}: {done.returncode}\n{done.stdout}{done.stderr}")
            print(f"heedmap {command}: {(done.stdout or done.stderr).rstrip().splitlines()[-1]}")
        asked = "from heedmap.runs.findings_file import findings_schema; print(findings_schema()['title'])"
        subprocess.run(
            [str(heedmap.with_name("python")), "-c", asked],
            cwd=folder, env={**os.environ, "PYTHONPATH": ""}, check=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
