"""Prepared bulk loads: what they depend on, and how they are submitted. `penstock load --spark --cluster` uses both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.client.service_requests import Credentials, ServiceClient, ServiceRequest, urls

if TYPE_CHECKING:
    from penstock.replication.load_files import Manifest


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """Properties of a cluster that a prepared load depends on: the number of shards and the addresses of the
    dictionaries.
    """

    shards: int
    dictionaries: tuple[str, ...]


class Loading:
    """The load interface of a cluster's coordinators (`url`, comma-separated). TransientError if none responds."""

    def __init__(self, url: str, credentials: Credentials | None = None) -> None:
        self._services = ServiceClient(credentials)
        self._coordinators = urls(url)

    def target(self) -> LoadTarget:
        """Return the properties that a load must be prepared for."""
        found = json.loads(self._ask(ServiceRequest("GET", "/loads")))
        return LoadTarget(int(found["shards"]), tuple(found["dictionaries"]))

    def store(self, manifest: Manifest) -> int:
        """Submit a prepared load; it is stored as one snapshot. Returns its number of triples. DataError if it is
        invalid.

        The files must exist as long as the log contains the load: a replica that reads the log from an earlier position
        reads them again.
        """
        return int(
            json.loads(self._ask(ServiceRequest("POST", "/loads", manifest.to_json(), "application/json")))["triples"]
        )

    def _ask(self, request: ServiceRequest) -> bytes:
        return self._services.send(lambda: self._coordinators, request)
