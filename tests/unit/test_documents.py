"""What documents name is there: links, decisions, paths, settings, metrics. (The README's commands: test_readme.py.)"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from prometheus_client import Counter
from tests.support.pages import blocks_of
from tools.docs import reference

from penstock.runtime.metrics import Metrics
from penstock.services.adaptor.service import AdaptorSettings
from penstock.services.adaptor.spark import SparkAdaptorSettings
from penstock.services.coordinator.service import CoordinatorSettings
from penstock.services.dictionary.service import DictionarySettings
from penstock.services.dispatcher.service import DispatcherSettings
from penstock.services.query_engine.service import QueryEngineSettings
from penstock.services.store.service import StoreSettings

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
)
SETTINGS = [
    AdaptorSettings, CoordinatorSettings, DictionarySettings, DispatcherSettings,
    QueryEngineSettings, SparkAdaptorSettings, StoreSettings,
]  # fmt: skip
# Not settings of a service.
OTHER_VARIABLES = {
    "CONFIG",
    "IMAGE",
    "LONG",
    "METRICS_TOKEN",
    "PARSER_MEMORY_MB",
    "SECRET",
    "SHARED",
    "TOKEN",
    "TOKENS",
    "URL",
}


def each_document() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@each_document()
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    generated = re.compile(
        r"(?:\.\./)*reference/(cli|errors|grammar|http|metrics|python|records|settings)\.md"
    )  # by make docs, which checks them
    written = [link for link in links if ":" not in link and not generated.fullmatch(link)]
    assert [link for link in written if not (document.parent / link).exists()] == []


@each_document()
def test_decisions_that_are_cited_exist(document: Path) -> None:
    cited = {int(number) for number in re.findall(r"\bADR 0*(\d+)", document.read_text(encoding="utf-8"))}
    assert [number for number in cited if not list(ROOT.glob(f"docs/adr/{number:04}-*.md"))] == []


def test_every_decision_stands_in_the_index_under_its_number() -> None:
    pages = sorted(path.name for path in ROOT.glob("docs/adr/0*.md"))
    index = (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"\]\((0[^)]+)\)", index))) == pages
    for number, page in re.findall(r"\[(\d+)\]\((0[^)]+)\)", index):
        assert page.startswith(f"{int(number):04}-")
        assert (ROOT / "docs/adr" / page).read_text(encoding="utf-8").startswith(f"# {number}. ")


def test_the_places_of_the_glossary_exist() -> None:
    rows = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines()[4:]
    places = [place for row in rows for place in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1])]
    roots = (ROOT, ROOT / "libs", ROOT / "libs/penstock")
    missing = [p for p in places if not any((root / f"{p}{end}").exists() for root in roots for end in ("", ".py"))]
    assert places
    assert missing == []


def test_the_paths_that_pages_name_exist() -> None:
    roots = [
        ROOT / root for root in ("", "libs", "libs/penstock", "native", "native/src", "native/src/store", "schemas")
    ]
    names = {
        path.name
        for folder in ("libs", "services", "native", "schemas", "tests", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.*")
    }
    named = re.compile(r"`([\w./-]+\.(?:py|hpp|cpp|avsc|lark|sh|c))(?:::\w+)?`")
    made = {block.title for page in DOCUMENTS if page.parent.name == "how-to" for block in blocks_of(page)}
    missing = [
        (document.name, path)
        for document in DOCUMENTS
        for path in named.findall(document.read_text(encoding="utf-8"))
        if path not in made and path not in names and not any((root / path).exists() for root in roots)
    ]
    assert missing == []


def test_every_setting_has_a_meaning() -> None:
    missing = [
        f"{each.__name__}.{name}"
        for each in SETTINGS
        for name, field in each.model_fields.items()
        if not field.description
    ]
    assert missing == []
    page = reference.settings()
    names = {f"PENSTOCK_{name.upper()}" for each in SETTINGS for name in each.model_fields} - {"PENSTOCK_KAFKA"}
    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_every_setting_that_a_page_names_exists() -> None:
    text = "".join(
        document.read_text(encoding="utf-8")
        for document in DOCUMENTS
        if document.name != "CHANGELOG.md" and document.parent.name != "proposals"
    )
    named = set(re.findall(r"\bPENSTOCK_([A-Z_]+[A-Z])\b", text))
    settings = {name.upper() for each in SETTINGS for name in each.model_fields}
    named = {name for name in named if not name.startswith(("KAFKA_", "SPARK_KAFKA_"))}
    assert sorted(named - settings - OTHER_VARIABLES) == []


def test_every_metric_of_the_services_has_a_meaning() -> None:
    page = reference.metrics()
    declared = [getattr(Metrics("any"), name) for name in vars(Metrics("any")) if name not in ("registry", "service")]
    assert [metric._name for metric in declared if len(metric._documentation) < 5] == []
    names = [f"{m._name}_total" if isinstance(m, Counter) else m._name for m in declared]
    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_every_metric_that_a_page_names_exists() -> None:
    text = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("operations.md", "how-to/tune.md"))
    page = reference.metrics()
    named = set(re.findall(r"`(penstock_[a-z_]+)[`{]", text))
    assert sorted(name for name in named if f"`{name}`" not in page) == []


def test_what_the_readmes_commands_write_is_ignored_by_git() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    written = sorted({f"{name}/" for name in re.findall(r"(?:--data-dir|penstock up) \./(\w+)", text)})
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert written
    assert [name for name in written if f"/{name}" not in ignored] == []


def test_a_wheel_names_its_licence_and_does_not_hold_its_text_as_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])


def test_the_site_is_checked_and_works_offline() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    [script] = re.findall(r"polyfills: \[(\S+)\]", settings)
    assert (ROOT / "docs" / script).exists()  # else the plugin `offline` links to one on the network
    assert "font: false" in settings
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "mkdocs build\n" in makefile  # with --quiet it does not count warnings, so `strict` has no effect
