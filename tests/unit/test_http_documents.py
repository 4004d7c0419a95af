"""The OpenAPI documents describe the HTTP interfaces: they are valid, and have every route and no other."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
import yaml
from openapi_spec_validator import validate
from tools.docs.openapi import METHODS, operations, render

from penstock import Engine
from penstock.engine.limits import Limits
from penstock.http import embedded, member_pages, query_statuses, sparql
from penstock.http.graph_store import GraphStore
from penstock.http.security.roles import role_of
from penstock.runtime import health_routes as web
from penstock.runtime.health import Health
from penstock.runtime.metrics import Metrics
from penstock.services.coordinator import http_routes as coordinator
from penstock.updates import effect_routes

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).resolve().parents[2] / "docs/openapi"
NAMES = ("serve", "coordinator", "query-engine")


def document(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def operations_of(routes: Iterable[Any]) -> set[tuple[str, str]]:
    """Methods and paths; HEAD comes with every GET."""
    return {
        (method, re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path))
        for route in routes
        for method in (route.methods or {"GET"}) - {"HEAD"}
    }


def service_routes(routes: Iterable[Any]) -> list[Any]:
    return web.application(Health(), Metrics("any"), lambda: None, list(routes)).routes


def real_operations(name: str) -> set[tuple[str, str]]:
    if name == "serve":
        with Engine() as engine:
            return operations_of(embedded.application(engine).routes)
    if name == "coordinator":
        return operations_of(service_routes(coordinator.routes(Mock(), Lock())))
    return operations_of(
        service_routes(
            [
                *sparql.routes(Mock(), Limits()),
                *GraphStore(Mock()).routes(),
                *effect_routes.routes(Mock()),
                *query_statuses.routes(Mock()),
                *member_pages.routes(Mock()),
            ]
        )
    )


def test_there_is_a_document_for_each_interface():
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_valid_openapi(name):
    validate(document(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_document_has_every_route_and_no_other(name):
    described = {(method, path) for path, method, _ in operations(document(name))}
    assert described == real_operations(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_rendered_page_has_every_operation(name):
    page = render(FOLDER / f"{name}.yaml")
    for path, method, operation in operations(document(name)):
        assert method.lower() in METHODS
        assert f"### `{method} {path}`" in page
        assert operation["summary"] in page


@pytest.mark.parametrize("name", NAMES)
def test_operations_need_a_token_where_the_services_check_one(name):
    found = document(name)
    assert found["security"] == [{}, {"bearer": []}]  # optional: a service may have no tokens
    for path, method, operation in operations(found):
        assert (operation.get("security") == []) == (role_of(method, path) is None), path


def test_the_rendered_page_names_the_role_of_a_token():
    page = render(FOLDER / "serve.yaml")
    events = page.partition("### `POST /streams/{iri}/events`")[2]
    assert "Role of the token: `write`." in events.partition("###")[0]
    assert "No token is needed." in page.partition("### `GET /health/live`")[2].partition("###")[0]
