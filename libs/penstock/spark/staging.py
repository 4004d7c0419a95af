"""The staging folder of a load: what each stage left, and which stages are complete.

`load.json` says which load this is (files with sizes and times, graph, bound of bad lines, shards) and what its
complete stages found. A stage's folder without an entry there is a remnant, and goes before the stage runs again.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.hadoop import HadoopFiles

VERSION = 1
STAGES = ("parse", "terms", "dictionary", "edges", "told")


class Staging:
    """A folder of any Hadoop file system, given to one load at a time.

    `kept`: a folder in which the edges of each load stay, under the load's name, once somebody was `told` of them.
    """

    def __init__(self, files: HadoopFiles, folder: str, kept: str | None = None) -> None:
        self._files = files
        self.folder = folder.rstrip("/")
        self._kept = None if kept is None else kept.rstrip("/")
        self._state: dict[str, Any] = {}

    def path(self, name: str) -> str:
        """Address of something in the folder, or of edges that are kept."""
        if name == "edges" and self._kept is not None:
            return f"{self._kept}/{self.load_id}"
        return f"{self.folder}/{name}"

    @property
    def load_id(self) -> str:
        """Name of this load; the same when it is taken up again."""
        return str(self._state["id"])

    def open(self, description: dict[str, Any]) -> bool:
        """Take up the load of that description, or begin it. Returns whether something of it was there.

        What an earlier, different load left is removed.
        """
        description = json.loads(json.dumps(description))
        if self._files.exists(self.path("load.json")):
            self._state = self._read()
        if self._state.get("version") == VERSION and self._state.get("load") == description:
            return bool(self._state["stages"])
        self.remove()
        self._state = {"version": VERSION, "id": uuid.uuid4().hex, "load": description, "stages": {}}
        self._write()
        return False

    def found(self, stage: str) -> dict[str, Any] | None:
        """What a complete stage found; None where it is not complete."""
        found: dict[str, Any] | None = self._state["stages"].get(stage)
        return found

    def begin(self, stage: str) -> str:
        """Forget this stage and all after it; returns the folder that it may fill."""
        for later in STAGES[STAGES.index(stage) :]:
            self._state["stages"].pop(later, None)
        self._write()
        for later in STAGES[STAGES.index(stage) :]:
            self._files.delete(self.path(later))
        return self.path(stage)

    def complete(self, stage: str, found: dict[str, Any]) -> None:
        """Note that the stage's folder is whole."""
        self._state["stages"][stage] = found
        self._write()

    def remove(self) -> None:
        """Leave nothing but edges of which somebody was told."""
        if self._kept is not None and self._state and "told" not in self._state["stages"]:
            self._files.delete(self.path("edges"))
        self._files.delete(self.folder)

    def _read(self) -> dict[str, Any]:
        try:
            state = json.loads(self._files.read(self.path("load.json")))
        except ValueError:
            return {}
        return state if isinstance(state, dict) else {}

    def _write(self) -> None:
        self._files.write(self.path("load.json"), json.dumps(self._state).encode())
