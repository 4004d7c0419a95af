"""Decoding of the records of internal topics, and quarantine of records that cannot be decoded.

A service that cannot decode a record fails with `UnreadableRecordError`. The error names the record, and the command
that puts it into quarantine. This command, `penstock quarantine`, writes the position of the record to the quarantine
topic. A service reads this topic when it cannot decode a record, and skips the record if the topic contains its
position.
"""

from penstock.quarantine.internal_records import InternalRecords
from penstock.quarantine.place import Place, UnreadableRecordError
from penstock.quarantine.setting_aside import Quarantined, listed, set_aside

__all__ = ["InternalRecords", "Place", "Quarantined", "UnreadableRecordError", "listed", "set_aside"]
