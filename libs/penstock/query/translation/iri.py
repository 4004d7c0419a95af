"""Resolution of relative IRI references (RFC 3986 §5)."""

from __future__ import annotations

import re

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_absolute(reference: str) -> bool:
    """Return whether an IRI reference begins with a scheme."""
    return _ABSOLUTE.match(reference) is not None


def resolve(base: str, reference: str) -> str:
    """Resolve an IRI reference against a base. An absolute reference stays unchanged (SPARQL 1.1 §4.1.1)."""
    if is_absolute(reference):
        return reference
    scheme, authority, path, query, _ = _split(base)
    _, own_authority, own_path, own_query, fragment = _split(reference)
    if own_authority is not None:
        authority, path, query = own_authority, _remove_dots(own_path), own_query
    elif own_path:
        merged = own_path if own_path.startswith("/") else _merge(authority, path, own_path)
        path, query = _remove_dots(merged), own_query
    elif own_query is not None:
        query = own_query
    return _join(scheme, authority, path, query, fragment)


def _split(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(text)
    assert match is not None  # the expression matches every text
    return match[1], match[2], match[3], match[4], match[5]


def _merge(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _remove_dots(path: str) -> str:
    """Remove dot segments from a path (RFC 3986 §5.2.4)."""
    segments = path.split("/")
    retained: list[str] = []
    for segment in segments:
        if segment == "..":
            if len(retained) > 1 or (retained and retained[0]):
                retained.pop()
        elif segment != ".":
            retained.append(segment)
    if segments[-1] in (".", ".."):
        retained.append("")
    if path.startswith("/") and (not retained or retained[0]):
        retained.insert(0, "")
    return "/".join(retained)


def _join(scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None) -> str:
    text = f"{scheme}:" if scheme is not None else ""
    if authority is not None:
        text += f"//{authority}"
    text += path
    if query is not None:
        text += f"?{query}"
    if fragment is not None:
        text += f"#{fragment}"
    return text
