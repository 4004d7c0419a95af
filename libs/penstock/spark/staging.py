"""The staging folder of a load. The folder contains the output of each stage, and the list of complete stages.

`load.json` describes the load (files with sizes and times, graph, maximum number of bad lines, shards) and the results
of complete stages. A stage's folder without an entry is a remnant, which is deleted before the stage runs again.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.hadoop import HadoopFiles

VERSION = 1
STAGES = ("parse", "terms", "dictionary", "edges", "submitted")


class Staging:
    """A folder on any Hadoop file system. Only one load at a time uses the folder.

    `retained_folder`: the folder that receives the edges of each load, in a subfolder with the load's name. `remove`
    retains the edges if the load is `submitted`.
    """

    def __init__(self, files: HadoopFiles, folder: str, retained_folder: str | None = None) -> None:
        self._files = files
        self.folder = folder.rstrip("/")
        self._retained_folder = None if retained_folder is None else retained_folder.rstrip("/")
        self._state: dict[str, Any] = {}

    def path(self, name: str) -> str:
        """Return the address of an item in the folder, or of retained edges."""
        if name == "edges" and self._retained_folder is not None:
            return f"{self._retained_folder}/{self.load_id}"
        return f"{self.folder}/{name}"

    @property
    def load_id(self) -> str:
        """Name of the load. A resumed load keeps its name."""
        return str(self._state["id"])

    def open(self, description: dict[str, Any]) -> bool:
        """Resume or start the described load. Returns whether there was something to resume.

        Removes the remains of a different load.
        """
        description = json.loads(json.dumps(description))
        self._state = self._read()
        if self._state.get("version") == VERSION and self._state.get("load") == description:
            return bool(self._state["stages"])
        self.remove()
        self._state = {"version": VERSION, "id": uuid.uuid4().hex, "load": description, "stages": {}}
        self._write()
        return False

    def found(self, stage: str) -> dict[str, Any] | None:
        """Return the results of a complete stage. None if the stage is incomplete."""
        found: dict[str, Any] | None = self._state["stages"].get(stage)
        return found

    def begin(self, stage: str) -> str:
        """Discard this stage and all later stages. Returns the folder for the output of this stage."""
        for later in STAGES[STAGES.index(stage) :]:
            self._state["stages"].pop(later, None)
        self._write()
        for later in STAGES[STAGES.index(stage) :]:
            self._files.delete(self.path(later))
        return self.path(stage)

    def complete(self, stage: str, found: dict[str, Any]) -> None:
        """Mark a stage as complete."""
        self._state["stages"][stage] = found
        self._write()

    def remove(self) -> None:
        """Delete everything except the edges of submitted loads."""
        if self._retained_folder is not None and self._state and "submitted" not in self._state["stages"]:
            self._files.delete(self.path("edges"))
        self._files.delete(self.folder)

    def _read(self) -> dict[str, Any]:
        try:
            state = json.loads(self._files.read_state(self.path("load.json")) or b"")
        except ValueError:
            return {}
        return state if isinstance(state, dict) else {}

    def _write(self) -> None:
        self._files.write_state(self.path("load.json"), json.dumps(self._state).encode())
