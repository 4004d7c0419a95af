"""`penstock acls`: prints the Kafka ACLs that the services and users of a cluster need."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.acls import Principal


class Format(StrEnum):
    """Forms in which ACLs are printed."""

    table = "table"
    commands = "commands"
    strimzi = "strimzi"


def acls(
    principals: Annotated[
        list[str] | None, typer.Argument(help="Services or users; default: all services. `all` adds the users.")
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", help="A table, `kafka-acls` commands, or Strimzi's KafkaUser resources.")
    ] = Format.table,
    prefix: Annotated[str, typer.Option(envvar="PENSTOCK_PREFIX", help="Prefix of the cluster's topics.")] = "penstock",
    user: Annotated[
        list[str] | None,
        typer.Option(help="Name of a principal, `store=CN=store`; may be repeated. Default: PREFIX-store."),
    ] = None,
    stream: Annotated[list[str] | None, typer.Option(help="A stream that producers push to; default: all.")] = None,
    results: Annotated[
        list[str] | None, typer.Option(help="A results topic of a query that does not begin with the prefix.")
    ] = None,
    group: Annotated[list[str] | None, typer.Option(help="A consumer group of consumers.")] = None,
    adaptor_group: Annotated[str, typer.Option(envvar="PENSTOCK_ADAPTOR_GROUP", help="Group of the adaptors.")] = "",
    bootstrap_servers: Annotated[
        str, typer.Option(envvar="PENSTOCK_BOOTSTRAP_SERVERS", help="Brokers in the commands.")
    ] = "localhost:9092",
    strimzi_cluster: Annotated[str, typer.Option(help="Name of Strimzi's Kafka resource.")] = "kafka",
    authentication: Annotated[
        str, typer.Option(help="Authentication of Strimzi's users: scram-sha-512 or tls.")
    ] = "scram-sha-512",
) -> None:
    """Print the least Kafka ACLs that the services and users of a cluster need.

    Services: coordinator, adaptor, spark-adaptor, dispatcher, dictionary, store, query-engine. Users: producer (pushes
    events), registrar (declares streams and registers queries by topic), consumer (reads results, outcomes of
    registrations, late events and dead letters), operator (runs `penstock quarantine` and `penstock doctor`).
    """
    from penstock.acls import Cluster, required_acls  # noqa: PLC0415
    from penstock.acls.printed_acls import commands, strimzi, table  # noqa: PLC0415

    cluster = Cluster(prefix, adaptor_group, stream or (), results or (), group or ())
    chosen = _chosen(principals or [])
    found = {principal: required_acls(principal, cluster) for principal in chosen}
    users = {principal: f"User:{prefix}-{principal}" for principal in chosen} | _named(user or [])
    if output is Format.table:
        lines = table(found, users)
    elif output is Format.commands:
        lines = commands(found, users, bootstrap_servers)
    else:
        lines = strimzi(found, users, strimzi_cluster, authentication)
    print("\n".join(lines))


def _chosen(principals: Sequence[str]) -> list[Principal]:
    from penstock.acls.required import SERVICES, Principal  # noqa: PLC0415

    if not principals:
        return list(SERVICES)
    if "all" in principals:
        return list(Principal)
    return [_principal(name) for name in principals]


def _principal(name: str) -> Principal:
    from penstock.acls import Principal  # noqa: PLC0415

    try:
        return Principal(name)
    except ValueError as error:
        raise DataError(f"{name} is no service or user: {', '.join(Principal)}") from error


def _named(given: Sequence[str]) -> dict[Principal, str]:
    found = {}
    for text in given:
        principal, _, name = text.partition("=")
        if not name:
            raise DataError(f"--user {text}: SERVICE=NAME")
        found[_principal(principal)] = name if name.startswith("User:") else f"User:{name}"
    return found
