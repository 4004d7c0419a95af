"""Prints the dependencies in pyproject.toml as a requirements list. `--link` makes the package and the command of this
checkout available in the environment.

The native module is built in place by native/build.sh, so a checkout needs no install step of its own.
"""

from __future__ import annotations

import stat
import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "#!{python}\nimport sys\n\nfrom penstock.cli import main\n\nsys.exit(main())\n"


def requirements(extras: list[str]) -> list[str]:
    """Return the dependencies of the project and of its build, or those of the named extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    if extras:
        return [line for extra in extras for line in project["project"]["optional-dependencies"][extra]]
    required = [*project["project"]["dependencies"], *project["build-system"]["requires"], "cmake>=3.24", "ninja"]
    return list(dict.fromkeys(required))


def link() -> None:
    """Make `import penstock` and the command `penstock` work in this environment.

    Writes a path file instead of an editable install. An editable install by scikit-build-core (1.1.2, both modes) puts
    a finder before `sys.path`, so that PYTHONPATH could no longer select another checkout for the same environment.
    """
    (Path(sysconfig.get_path("purelib")) / "penstock.pth").write_text(f"{ROOT / 'libs'}\n")
    command = Path(sysconfig.get_path("scripts")) / "penstock"
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(command.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


if __name__ == "__main__":
    if sys.argv[1:] == ["--link"]:
        link()
    else:
        sys.stdout.write("\n".join(requirements(sys.argv[1:])) + "\n")
