"""Decoding of records of internal topics, and quarantine of unreadable ones.

A service that reads an unreadable record fails with `UnreadableRecordError`, which names the record and the command
that puts it into quarantine. `penstock quarantine` writes the record's position to the quarantine topic. A service
checks that topic when it cannot read a record: a listed record has no effect in any service.
"""

from penstock.quarantine.internal_records import InternalRecords
from penstock.quarantine.place import Place, UnreadableRecordError
from penstock.quarantine.setting_aside import Quarantined, listed, set_aside

__all__ = ["InternalRecords", "Place", "Quarantined", "UnreadableRecordError", "listed", "set_aside"]
