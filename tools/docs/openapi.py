"""Renders an OpenAPI document as Markdown: one section for each tag, one entry for each operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from penstock.http.security.roles import role_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

METHODS = ("get", "put", "post", "delete")


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, method and operation; the path's own parameters come first."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                parameters = [*item.get("parameters", ()), *item[method].get("parameters", ())]
                yield path, method.upper(), {**item[method], "parameters": parameters}


def render(source: Path) -> str:
    """Return the sections of one document."""
    document = yaml.safe_load(source.read_text(encoding="utf-8"))
    lines = [f"## {document['info']['title']}", "", document["info"]["description"].strip(), ""]
    lines += [document["components"]["securitySchemes"]["bearer"]["description"].strip(), ""]
    lines += [f"Document: [{source.name}](../openapi/{source.name})", ""]
    for tag in document["tags"]:
        for path, method, operation in operations(document):
            if tag["name"] in operation["tags"]:
                lines += _operation(document, path, method, operation)
    return "\n".join([*lines, *_schemas(document), ""])


def _operation(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> list[str]:
    lines = [f"### `{method} {path}` {{ #{document['info']['title'].split()[-1].lower()}-{operation['operationId']} }}"]
    lines += ["", operation["summary"], "", operation.get("description", "").strip(), "", _token(path, method), ""]
    parameters = [_resolved(document, each) for each in operation["parameters"]]
    if parameters:
        lines += ["| parameter | in | type | meaning |", "| --- | --- | --- | --- |"]
        lines += [f"| {_name(each)} | {each['in']} | {_type(each['schema'])} | {_text(each)} |" for each in parameters]
        lines.append("")
    if "requestBody" in operation:
        lines += ["Body: " + _content(operation["requestBody"]["content"]), ""]
    lines += ["| status | meaning | content |", "| --- | --- | --- |"]
    for status, response in operation["responses"].items():
        found = _resolved(document, response)
        lines.append(f"| {status} | {_text(found)} | {_content(found.get('content', {}))} |")
    return [*lines, ""]


def _token(path: str, method: str) -> str:
    role = role_of(method, path)
    return "No token is needed." if role is None else f"Role of the token: `{role.name.lower()}`."


def _schemas(document: dict[str, Any]) -> list[str]:
    lines = [f"### Objects of {document['info']['title']}", ""]
    for name, schema in document["components"]["schemas"].items():
        lines += [f"**{name}**{': ' + schema['description'] if 'description' in schema else ''}", ""]
        lines += ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
        lines += [_field(field, each) for field, each in _fields(document, schema).items()]
        lines.append("")
    return lines


def _fields(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in schema.get("allOf", [schema]):
        found |= _resolved(document, part).get("properties", {})
    return found


def _field(name: str, schema: dict[str, Any]) -> str:
    default = f"`{schema['default']}`" if "default" in schema else "-"
    return f"| `{name}` | {_type(schema)} | {default} | {_text(schema)} |"


def _name(parameter: dict[str, Any]) -> str:
    return f"`{parameter['name']}`" + (" (required)" if parameter.get("required") else "")


def _text(described: dict[str, Any]) -> str:
    return str(described.get("description", "")).strip().replace("|", "/")


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return f"`{schema['const']}`"
    if "oneOf" in schema:
        return " or ".join(_type(each) for each in schema["oneOf"])
    kind = schema["type"]
    if isinstance(kind, list):
        return " or ".join(kind)
    inner = schema.get("items", schema.get("additionalProperties"))
    return f"{kind} of {_type(inner)}" if isinstance(inner, dict) else str(kind)


def _content(content: dict[str, Any]) -> str:
    if set(content) == {"application/json"}:
        return f"`application/json`: {_type(content['application/json']['schema'])}"
    return ", ".join(f"`{media}`" for media in content) or "-"


def _resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    found: Any = document
    for step in node["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return dict(found)
