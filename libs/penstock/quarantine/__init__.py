"""Records of the cluster's own topics that cannot be read: the one place where they are decoded, and set aside.

A service that meets such a record ends with `UnreadableRecordError`, which names the record and the command that sets
it aside. `penstock quarantine` puts the record's place into the quarantine topic. A service consults that topic when it
cannot read a record: one that is listed has no effect, in any service.
"""

from penstock.quarantine.place import Place, UnreadableRecordError
from penstock.quarantine.records import InternalRecords
from penstock.quarantine.setting_aside import Quarantined, listed, set_aside

__all__ = ["InternalRecords", "Place", "Quarantined", "UnreadableRecordError", "listed", "set_aside"]
