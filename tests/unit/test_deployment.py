"""Dockerfile and compose file name commands, settings and ports that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.main import get_command

from penstock.cli.app import app

pytest.importorskip("confluent_kafka")

from penstock.runtime.cluster_settings import ClientSettings
from penstock.services.adaptor.service import AdaptorSettings
from penstock.services.dictionary.service import DictionarySettings
from penstock.services.dispatcher.service import DispatcherSettings
from penstock.services.query_engine.service import QueryEngineSettings
from penstock.services.store.service import StoreSettings

if TYPE_CHECKING:
    from penstock.runtime.settings import ServiceSettings

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, type[ServiceSettings]] = {
    "adaptor": AdaptorSettings,
    "dispatcher": DispatcherSettings,
    "dictionary": DictionarySettings,
    "coordinator": ClientSettings,
    "store": StoreSettings,
    "query-engine": QueryEngineSettings,
}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
FOREIGN = {"kafka", "prometheus", "grafana"}
OWN = {name: service for name, service in COMPOSE["services"].items() if name not in FOREIGN}
IN_IMAGE = dict(re.findall(r"(?<!define\.)(PENSTOCK_\w+)=(\S+)", DOCKERFILE))


@pytest.mark.parametrize("name", OWN)
def test_a_service_runs_a_command_with_settings_that_it_has(name: str, monkeypatch: pytest.MonkeyPatch):
    [command] = OWN[name]["command"]
    assert command in get_command(app).commands
    settings = SETTINGS[command]
    given = IN_IMAGE | OWN[name]["environment"]
    assert {key.removeprefix("PENSTOCK_").lower() for key in given} <= settings.model_fields.keys()
    for key, value in given.items():
        monkeypatch.setenv(key, value)
    made = settings()  # all that must be there is, and makes sense
    assert made.instance == name


def test_every_service_and_every_standby_is_there():
    commands = [service["command"][0] for service in OWN.values()]
    assert {command: commands.count(command) for command in SETTINGS} == {
        "adaptor": 1,
        "dispatcher": 1,
        "dictionary": 2,
        "coordinator": 2,
        "store": 2,
        "query-engine": 2,
    }


def test_ports_are_those_that_services_listen_on():
    exposed = set(re.search(r"^EXPOSE (.+)$", DOCKERFILE, re.MULTILINE)[1].split())
    http = IN_IMAGE["PENSTOCK_HTTP_PORT"]
    assert f":{http}/health/live" in DOCKERFILE
    settings = [service["environment"] for service in OWN.values() if "PENSTOCK_LISTEN" in service["environment"]]
    listening = {given["PENSTOCK_LISTEN"].split(":")[1] for given in settings}
    listening |= {given["PENSTOCK_DATA_PORT"] for given in settings if "PENSTOCK_DATA_PORT" in given}
    assert exposed == {http, *listening}
    published = [port for service in OWN.values() for port in service.get("ports", ())]
    assert {port.split(":")[1] for port in published} == {http}
    assert len({port.split(":")[0] for port in published}) == len(published)
    for service in OWN.values():
        for location in service["environment"].get("PENSTOCK_DICTIONARIES", "").split(","):
            if location:
                host, port = location.removeprefix("grpc://").split(":")
                assert OWN[host]["environment"]["PENSTOCK_LISTEN"].endswith(f":{port}")


def test_services_find_the_broker_and_keep_their_data():
    inside = COMPOSE["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")[0]
    assert {service["environment"]["PENSTOCK_BOOTSTRAP_SERVERS"] for service in OWN.values()} == {
        inside.removeprefix("INSIDE://")
    }
    for service in OWN.values():
        folder = service["environment"].get("PENSTOCK_DATA_DIR")
        assert [volume.split(":")[1] for volume in service.get("volumes", ())] == ([folder] if folder else [])
        assert all(volume.split(":")[0] in COMPOSE["volumes"] for volume in service.get("volumes", ()))


def test_the_image_copies_the_files_of_the_build_and_runs_as_an_unprivileged_user():
    for source in re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / part).exists() for part in source.split())
    assert re.search(r"^USER [1-9]\d*$", DOCKERFILE, re.MULTILINE)
    assert DOCKERFILE.count("FROM ${BASE_IMAGE}") == 2


def test_the_image_is_given_everything_that_the_build_installs():
    build = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    installed = {path.partition("/")[0] for path in re.findall(r"install\(DIRECTORY (\S+)", build)}
    copied = set(re.findall(r"^COPY (\w+) \w+$", DOCKERFILE, re.MULTILINE))
    sent = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    assert installed | {"libs", "native", "schemas"} <= copied
    assert copied <= sent


def test_a_change_of_a_python_file_compiles_nothing_again():
    before, after = DOCKERFILE.split("cmake --build", 1)
    copied = {part for line in re.findall(r"^COPY (?!--)(.+) \S+$", before, re.MULTILINE) for part in line.split()}
    assert copied == {"pyproject.toml", "CMakeLists.txt", "native"}
    assert "PENSTOCK_BUILT_MODULE" in after
    packages, wheel = after.split("pip wheel", 1)
    assert packages.rindex("pip install") < packages.index("COPY libs libs")  # nor does it load the packages again
    assert "--no-deps" in wheel.partition("FROM")[0]


def test_the_image_of_spark_has_the_connector_and_its_files():
    spark = (ROOT / "Dockerfile.spark").read_text(encoding="utf-8")
    sent = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    copied = set(re.findall(r"^COPY (?!--)(\S+) \S+$", spark, re.MULTILINE))
    assert copied <= sent
    [connector] = re.findall(r"PENSTOCK_SPARK_KAFKA_JARS=(\S+)", spark)
    assert re.search(rf"^COPY --from=connector \S+ {connector}$", spark, re.MULTILINE)


def test_two_clusters_on_one_broker_have_adaptor_groups_of_their_own():
    common = {"bootstrap_servers": "b:1", "dictionaries": "grpc://d:1"}
    groups = [
        (AdaptorSettings(**common, prefix=prefix).group, DispatcherSettings(**common, prefix=prefix).group)
        for prefix in ("red", "blue")
    ]
    assert groups == [("red.adaptor", "red.adaptor"), ("blue.adaptor", "blue.adaptor")]
    assert AdaptorSettings(**common, adaptor_group="mine").group == "mine"
