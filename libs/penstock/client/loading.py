"""A client for prepared bulk loads into a cluster (`penstock load --spark --cluster`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.client.service_requests import Credentials, ServiceClient, ServiceRequest, urls

if TYPE_CHECKING:
    from penstock.replication.load_files import Manifest


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """The properties of a cluster for which a load is prepared: the number of shards, and the addresses of the
    dictionary's instances.
    """

    shards: int
    dictionaries: tuple[str, ...]


class Loading:
    """Sends requests about loads to the coordinators of a cluster. `url`: the coordinators' URLs, comma-separated.
    TransientError if no coordinator responds.
    """

    def __init__(self, url: str, credentials: Credentials | None = None) -> None:
        self._services = ServiceClient(credentials)
        self._coordinators = urls(url)

    def target(self) -> LoadTarget:
        """Return the properties of the target cluster. These properties determine how a load into this cluster is
        prepared.
        """
        found = json.loads(self._ask(ServiceRequest("GET", "/loads")))
        return LoadTarget(int(found["shards"]), tuple(found["dictionaries"]))

    def store(self, manifest: Manifest) -> int:
        """Store a prepared load as one snapshot. Returns the load's number of triples. DataError if the load is
        invalid.

        The files must exist as long as the log contains the load. Stores read these files when they read the load from
        the log. A query engine that holds the stored graph itself also reads the files.
        """
        return int(
            json.loads(self._ask(ServiceRequest("POST", "/loads", manifest.to_json(), "application/json")))["triples"]
        )

    def _ask(self, request: ServiceRequest) -> bytes:
        return self._services.send(lambda: self._coordinators, request)
