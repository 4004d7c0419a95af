"""Generates the reference pages from their definitions: Python API, commands, HTTP, settings, metrics, records, errors,
grammar.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.cli import get_docs_for_click

import penstock
from penstock import errors as error_classes
from penstock.cli.app import app
from penstock.http.error_responses import status_of
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.runtime.metrics import Metrics
from penstock.runtime.settings import ServiceSettings
from penstock.services.adaptor.service import AdaptorSettings
from penstock.services.adaptor.spark import SparkAdaptorSettings
from penstock.services.coordinator.service import CoordinatorSettings
from penstock.services.dictionary.service import DictionarySettings
from penstock.services.dispatcher.service import DispatcherSettings
from penstock.services.query_engine.service import QueryEngineSettings
from penstock.services.store.service import StoreSettings
from tools.docs import grammar, openapi

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
SETTINGS: dict[str, type[ServiceSettings]] = {
    "adaptor": AdaptorSettings,
    "adaptor --spark": SparkAdaptorSettings,
    "dispatcher": DispatcherSettings,
    "dictionary": DictionarySettings,
    "coordinator": CoordinatorSettings,
    "store": StoreSettings,
    "query-engine": QueryEngineSettings,
}

_SETTINGS = """# Settings of the services

A setting is an environment variable, or an entry of the TOML file that `PENSTOCK_CONFIG` names (same name in lower
case, without the prefix). The environment takes precedence. A missing or invalid setting ends the service with exit
code 2 and one line for each error. `PENSTOCK_…_MS` are milliseconds, `PENSTOCK_…_S` seconds.

## Every service
"""
_HTTP = """# HTTP

OpenAPI documents describe the three HTTP interfaces. A service without routes of its own answers `/health/live`,
`/health/ready` and `/metrics`.

"""
_ERRORS = """# Errors

`PenstockError` is the base class of all errors of Penstock. Over HTTP an error is a JSON object with `error` (the
class), `message` and, for an error in a query text, `line` and `column`.
"""
_GRAMMAR = """# Grammar

This page contains the complete grammar in the EBNF of the W3C. It is generated from the parser's grammar
(`sparql.lark`).
Keywords are case-insensitive. `IRIREF`, `PNAME_LN`, `INTEGER` and the other tokens are those of
[SPARQL 1.1 §19.8](https://www.w3.org/TR/sparql11-query/#rQueryUnit). `NAME` is a bare name, a function or a unit.
Built-in functions are calls of a `NAME`; their names and argument counts are checked after parsing."""
_TOPICS = """# Topics and records

Clients use the topics of [the Kafka contract](../kafka.md); the others are internal. In addition to this table, each
stream has `penstock.events.STREAM` (written by clients) and `penstock.tuples.STREAM` (written by adaptors), and the
dispatcher has `penstock.dispatcher`.
"""


def python() -> str:
    """Return the page of the Python API: every public name of the package, from its docstring."""
    return "# Python API\n\n" + "\n".join(f"::: penstock.{name}\n" for name in sorted(penstock.__all__))


def commands() -> str:
    """Return the page of the command line, from the commands' own help."""
    command = typer.main.get_command(app)
    return get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="penstock"), name="penstock")


def settings() -> str:
    """Return the page of the services' settings: those of every service, then what each service adds or changes."""
    common = ServiceSettings.model_fields
    lines = [_SETTINGS, *_settings_table(common)]
    for service, settings_type in SETTINGS.items():
        own = {name: field for name, field in settings_type.model_fields.items() if _differs(field, common.get(name))}
        lines += ["", f"## penstock {service}", "", *_settings_table(own)]
    return "\n".join(lines) + "\n"


def _differs(field: Any, common: Any) -> bool:
    return common is None or (field.default, field.description) != (common.default, common.description)


def _settings_table(fields: Any) -> list[str]:
    rows = [_setting(name, field) for name, field in sorted(fields.items())]
    return ["| variable | default | meaning |", "| --- | --- | --- |", *rows]


def _setting(name: str, field: Any) -> str:
    if field.is_required():
        default = "required"
    else:
        value = field.get_default(call_default_factory=True)
        default = "-" if value is None or value in ({}, "") else f"`{value}`"
        if name == "instance":
            default = "host name"
    variable = f"`PENSTOCK_{name.upper()}`" if name != "kafka" else "`PENSTOCK_KAFKA_…`"
    return f"| {variable} | {default} | {(field.description or '').replace('|', '/')} |"


def metrics() -> str:
    """Return the page of the services' metrics."""
    lines = ["# Metrics of the services", "", "| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for metric in sorted(Metrics("reference").registry._collector_to_names, key=lambda each: each._name):  # noqa: SLF001
        name = f"{metric._name}_total" if metric._type == "counter" else metric._name  # noqa: SLF001
        labels = ", ".join(f"`{label}`" for label in metric._labelnames) or "-"  # noqa: SLF001
        lines.append(f"| `{name}` | {metric._type} | {labels} | {metric._documentation} |")  # noqa: SLF001
    return "\n".join(lines) + "\n"


def records() -> str:
    """Return the page of the cluster's topics and of the records that services exchange."""
    lines = [
        _TOPICS,
        "| topic | partitions | cleanup policy |",
        "| --- | --- | --- |",
        *(f"| `{t.name}` | {t.partitions} | {t.cleanup} |" for t in ClusterTopics(TopicNames("penstock")).all()),
        "",
        "Records of internal topics are Avro in single-object encoding. `schemas/` has the definitions.",
    ]
    for path in sorted((ROOT / "schemas").glob("*.avsc")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        lines += ["", f"## {schema['name']}", "", schema.get("doc", ""), ""]
        lines += ["| field | type | meaning |", "| --- | --- | --- |"]
        lines += [
            f"| `{field['name']}` | {_type(field['type'])} | {field.get('doc', '')} |" for field in schema["fields"]
        ]
    return "\n".join(lines) + "\n"


def _type(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return " or ".join(_type(each) for each in schema)
    kind = schema.get("logicalType", schema["type"])
    inner = schema.get("items", schema.get("values"))
    return kind if inner is None else f"{kind} of {_type(inner)}"


def http() -> str:
    """Return the page of the HTTP interfaces, from their OpenAPI documents."""
    documents = (ROOT / "docs/openapi" / f"{name}.yaml" for name in ("serve", "coordinator", "query-engine"))
    return _HTTP + "\n".join(openapi.render(each) for each in documents)


def errors() -> str:
    """Return the page of the error classes, with the HTTP status of each."""
    lines = [_ERRORS, "| class | base class | HTTP status |", "| --- | --- | --- |"]
    found = [getattr(error_classes, name) for name in sorted(error_classes.__all__)]
    for each in found:
        bases = ", ".join(f"`{base.__name__}`" for base in each.__bases__)
        status = "-" if issubclass(each, Warning) else str(status_of(each))
        lines.append(f"| [`{each.__name__}`](#penstock.errors.{each.__name__}) | {bases} | {status} |")
    return "\n".join([*lines, "", *(f"::: penstock.errors.{each.__name__}\n" for each in found)])


def language() -> str:
    """Return the grammar of the query language in EBNF."""
    source = (ROOT / "libs/penstock/query/syntax/grammar/sparql.lark").read_text(encoding="utf-8")
    lines = [_GRAMMAR]
    for title, rules in grammar.sections(source):
        lines += ["", f"## {title[0].upper()}{title[1:]}", "", "```text", *rules, "```"]
    return "\n".join([*lines, ""])


def pages() -> Iterator[tuple[str, str]]:
    """Yield each generated page: its path and its text."""
    yield "reference/python.md", python()
    yield "reference/cli.md", commands()
    yield "reference/settings.md", settings()
    yield "reference/metrics.md", metrics()
    yield "reference/records.md", records()
    yield "reference/http.md", http()
    yield "reference/errors.md", errors()
    yield "reference/grammar.md", language()


if __name__ in {"__main__", "<run_path>"}:
    import mkdocs_gen_files

    for path, text in pages():
        with mkdocs_gen_files.open(path, "w") as file:
            file.write(text)
