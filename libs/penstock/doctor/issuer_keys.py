"""Checks that the keys of an issuer of tokens can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.doctor.findings import failure, ok
from penstock.http.security.key_sets import IssuerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.doctor.findings import Finding
    from penstock.http.security.issuer import IssuerSettings


def keys(settings: IssuerSettings) -> Iterator[Finding]:
    """Read the keys of an issuer."""
    try:
        found = settings.source().fetch()
    except IssuerError as error:
        remedy = (
            "PENSTOCK_HTTP_OIDC_ISSUER, _JWKS and _CA: this machine must reach the issuer and trust its certificate"
        )
        yield failure("issuer", str(error), remedy)
    else:
        yield ok("issuer", f"{settings.url}: {len(found)} keys")
