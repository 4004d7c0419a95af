"""Decoding of the records of internal topics, and quarantine of records that cannot be decoded.

When a service cannot decode a record, the service looks up the position of the record in the quarantine topic. If the
topic contains the position, the service skips the record. Otherwise, the service fails with `UnreadableRecordError`.
The error names the record, and the command that puts the record into quarantine. This command, `penstock quarantine`,
writes the position of the record to the quarantine topic.
"""

from penstock.quarantine.internal_records import InternalRecords
from penstock.quarantine.place import Place, UnreadableRecordError
from penstock.quarantine.setting_aside import Quarantined, listed, set_aside

__all__ = ["InternalRecords", "Place", "Quarantined", "UnreadableRecordError", "listed", "set_aside"]
