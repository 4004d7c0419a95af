"""Writes the Kafka ACLs of the chart's users from their definition: `python -m tools.chart_acls`.

`%PREFIX%`, `%GROUP%` and `%TOPIC%` stand for the cluster's prefix, the adaptors' group and a results topic.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.acls import Cluster, Principal, required_acls
from penstock.acls.printed_acls import strimzi_rule

if TYPE_CHECKING:
    from penstock.acls import Acl

FILE = Path(__file__).resolve().parents[1] / "helm" / "penstock" / "acls.yaml"
_PREFIX, _GROUP, _TOPIC = "%PREFIX%", "%GROUP%", "%TOPIC%"
USERS = {
    "dictionary": (Principal.dictionary,),
    "adaptor": (Principal.adaptor,),
    "spark-adaptor": (Principal.spark_adaptor,),
    "dispatcher": (Principal.dispatcher,),
    "coordinator": (Principal.coordinator,),
    "store": (Principal.store,),
    "query-engine": (Principal.query_engine,),
    "test": (Principal.producer, Principal.consumer),
}


def text() -> str:
    """Return the file: for each user its ACLs, and the additional ones for each results topic."""
    lines = ["# Written by `python -m tools.chart_acls`. Kafka ACLs of the chart's KafkaUsers."]
    for user, principals in USERS.items():
        lines.append(f"{user}:")
        own = _acls(principals, ())
        more = [acl for acl in _acls(principals, (_TOPIC,)) if acl not in own]
        for name, acls in (("acls", own), ("results", more)):
            lines.append(f"  {name}:" + (" []" if not acls else ""))
            lines += [f"    - {strimzi_rule(acl)}" for acl in acls]
    return "\n".join(lines) + "\n"


def _acls(principals: tuple[Principal, ...], results: tuple[str, ...]) -> list[Acl]:
    cluster = Cluster(_PREFIX, _GROUP, results=results)
    return [acl for principal in principals for acl in required_acls(principal, cluster)]


def main() -> None:
    """Write the file."""
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
