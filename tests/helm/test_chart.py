"""The Helm chart: lint, schema, rendered resources. Needs Helm (`make test-helm` brings it), no cluster."""

from __future__ import annotations

import base64
import functools
import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tools import chart_acls
from tools.docs.reference import SETTINGS
from tools.kubernetes import readme
from typer.main import get_command

import penstock
from penstock.acls import Cluster, required_acls
from penstock.acls.printed_acls import strimzi_rule
from penstock.cli.app import app
from penstock.http.security import Role, TokenFile
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.runtime import ServiceSettings, load
from support.answering import AnsweringServer

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "penstock"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
VERSIONS = ("1.29", "1.34")
OPERATORS = {"cert-manager.io", "monitoring.coreos.com", "kafka.strimzi.io", "keda.sh"}
TRIAL = ("--set", "kafka.embedded.enabled=true")
pytestmark = pytest.mark.helm


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "tools" / "helm.sh", *arguments], capture_output=True, text=True, check=False)


@functools.cache
def render(*arguments: str) -> list[dict[str, Any]]:
    done = helm("template", "test", str(CHART), "--namespace", "ns", *arguments)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def refusal(*arguments: str) -> str:
    done = helm("template", "test", str(CHART), *arguments)
    assert done.returncode != 0, "the values were accepted"
    return done.stderr


def find(documents: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    [found] = [d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name]
    return found


def pod(documents: list[dict[str, Any]], name: str) -> dict[str, Any]:
    [found] = [d for d in documents if d["kind"] in {"StatefulSet", "Deployment"} and d["metadata"]["name"] == name]
    return found["spec"]["template"]["spec"]


def pods(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [d["spec"]["template"]["spec"] for d in documents if d["kind"] in {"StatefulSet", "Deployment"}]


def drivers_and_executors(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pods of bulk loads, and those that Spark makes from the chart's templates."""
    loads = [d["spec"]["jobTemplate"]["spec"]["template"]["spec"] for d in documents if d["kind"] == "CronJob"]
    return loads + [template["spec"] for template in executor_templates(documents).values()]


def executor_templates(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = [d for d in documents if d["kind"] == "ConfigMap" and d["metadata"]["name"].endswith("-executor")]
    return {name: yaml.safe_load(text) for d in found for name, text in d["data"].items()}


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def example(name: str, *arguments: str) -> list[dict[str, Any]]:
    return render("--values", str(CHART / "examples" / f"{name}.yaml"), *arguments)


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_passes_lint_and_the_schemas_of_kubernetes(values: Path):
    linted = helm("lint", "--strict", str(CHART), "--values", str(values))
    assert linted.returncode == 0, linted.stdout + linted.stderr
    documents = example(values.stem)
    assert {"StatefulSet", "Deployment", "Service"} <= {d["kind"] for d in documents}
    for document in documents:
        if document["apiVersion"].partition("/")[0] not in OPERATORS:
            for version in VERSIONS[-1:] if values.stem == "rdma-dra" else VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)


def test_there_are_enough_examples():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_pods_meet_the_restricted_profile(values: Path):
    documents = example(values.stem)
    for spec in pods(documents) + drivers_and_executors(documents):
        security = spec["securityContext"]
        assert security["runAsNonRoot"]
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"]["drop"] == ["ALL"]
            rdma = values.stem.startswith("rdma") and container["name"] in {"store", "query-engine"}
            assert own["capabilities"].get("add", []) == (["IPC_LOCK"] if rdma else [])


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_volume_mounts_have_volumes_and_names_are_unique(values: Path):
    documents = example(values.stem)
    names = [(d["kind"], d["metadata"]["name"]) for d in documents]
    assert len(names) == len(set(names))
    for spec in drivers_and_executors(documents):
        for container in spec["containers"]:
            assert {m["name"] for m in container["volumeMounts"]} <= {v["name"] for v in spec["volumes"]}
    for document in documents:
        if document["kind"] not in {"StatefulSet", "Deployment"}:
            continue
        spec = document["spec"]["template"]["spec"]
        volumes = {v["name"] for v in spec["volumes"]}
        volumes |= {c["metadata"]["name"] for c in document["spec"].get("volumeClaimTemplates", [])}
        for container in spec["containers"]:
            assert {m["name"] for m in container["volumeMounts"]} <= volumes, document["metadata"]["name"]


def test_services_get_settings_that_they_have():
    for name in ("trial", "production", "colocated", "rdma-device-plugin", "two-clusters", "spark-local", "oidc"):
        for spec in pods(example(name)):
            for container in spec["containers"]:
                if container["name"] == "kafka":
                    continue
                spark = container["name"] == "adaptor" and name.startswith("spark")
                fields = SETTINGS["adaptor --spark" if spark else container["name"]].model_fields.keys()
                given = {key.removeprefix("PENSTOCK_").lower() for key in environment(container) if "PENSTOCK" in key}
                given = {key for key in given if not key.startswith("kafka_")}
                assert given <= fields, (name, container["name"])


def test_every_service_reaches_the_dictionaries_by_their_own_names():
    documents = render(*TRIAL, "--set", "dictionary.replicas=3")
    expected = ",".join(f"grpc://test-penstock-dictionary-{i}.test-penstock-dictionary:7879" for i in range(3))
    for name in ("adaptor", "coordinator", "store", "query-engine"):
        assert (
            environment(pod(documents, f"test-penstock-{name}")["containers"][0])["PENSTOCK_DICTIONARIES"] == expected
        )
    service = find(documents, "Service", "test-penstock-dictionary")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"]


def test_a_secret_is_made_once_and_only_where_none_is_named():
    secret = find(render(*TRIAL), "Secret", "test-penstock-secret")
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    documents = render(*TRIAL, "--set", "secret.existingSecret=mine", "--set", "http.auth.enabled=false")
    assert not [d for d in documents if d["kind"] == "Secret"]
    [volume] = [v for v in pod(documents, "test-penstock-store")["volumes"] if v["name"] == "secret"]
    assert volume["secret"]["secretName"] == "mine"


def test_the_token_that_the_chart_makes_is_one_of_its_tokens(tmp_path: Path):
    data = find(render(*TRIAL), "Secret", "test-penstock-tokens")["data"]
    file = tmp_path / "tokens"
    file.write_bytes(base64.b64decode(data["tokens"]))
    assert TokenFile(file).identify(base64.b64decode(data["admin-token"]).decode()).role is Role.ADMIN
    for spec in pods(render(*TRIAL)):
        for container in spec["containers"]:
            if container["name"] != "kafka":
                assert environment(container)["PENSTOCK_HTTP_TOKENS_FILE"] == "/run/secrets/tokens/tokens"
    insecure = environment(
        pod(render(*TRIAL, "--set", "http.auth.enabled=false"), "test-penstock-store")["containers"][0]
    )
    assert insecure["PENSTOCK_HTTP_INSECURE"] == "true"
    assert "PENSTOCK_HTTP_TOKENS_FILE" not in insecure


def test_the_values_of_an_issuer_are_settings_of_every_service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    documents = example("oidc")
    (tmp_path / "ca.crt").touch()
    for spec in pods(documents):
        for container in spec["containers"]:
            given = {name: value for name, value in environment(container).items() if "HTTP_OIDC" in name}
            assert given.pop("PENSTOCK_HTTP_OIDC_CA") == "/run/secrets/oidc-ca/ca.crt"
            [mount] = [m for m in container["volumeMounts"] if m["mountPath"] == "/run/secrets/oidc-ca"]
            [volume] = [v for v in spec["volumes"] if v["name"] == mount["name"]]
            assert volume["secret"] == {"secretName": "login-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PENSTOCK_HTTP_OIDC_CA", str(tmp_path / "ca.crt"))
    issuer = load(ServiceSettings, bootstrap_servers="kafka:9092").issuer()
    assert issuer is not None
    assert (issuer.url, issuer.audience) == ("https://login.example:8443/realms/data", "penstock")
    assert (issuer.role_claim, issuer.leeway_s, issuer.jwks) == ("realm_access.roles", 30.0, None)
    assert (issuer.rate, issuer.max_body_bytes) == (50.0, 8 << 20)
    assert issuer.roles == {"penstock-admin": Role.ADMIN, "penstock-app": Role.WRITE, "penstock-user": Role.READ}
    policy = find(documents, "NetworkPolicy", "test-penstock-default")["spec"]["egress"]
    assert {"ports": [{"port": 8443}]} in policy


def test_subjects_of_an_issuer_have_no_limits_by_default():
    documents = example("oidc", "--set", "http.auth.oidc.rate=0,http.auth.oidc.maxBodyMb=0")
    [container] = pod(documents, "test-penstock-store")["containers"]
    assert not {"PENSTOCK_HTTP_OIDC_RATE", "PENSTOCK_HTTP_OIDC_MAX_BODY_MB"} & environment(container).keys()


def test_https_reaches_probes_scrapers_and_the_test():
    documents = example("https")
    [container] = pod(documents, "test-penstock-store")["containers"]
    assert {container[f"{p}Probe"]["httpGet"]["scheme"] for p in ("startup", "readiness", "liveness")} == {"HTTPS"}
    certificate = find(documents, "Certificate", "test-penstock")["spec"]
    assert certificate["secretName"] == "test-penstock-tls"
    assert "*.test-penstock-store.ns.svc" in certificate["dnsNames"]
    test = environment(find(documents, "Pod", "test-penstock-test")["spec"]["containers"][0])
    assert test["COORDINATORS"].startswith("https://")
    assert test["CA"] == "/run/secrets/tls/ca.crt"


def test_dictionaries_and_their_clients_authenticate_by_tls():
    plain = environment(pod(render(*TRIAL), "test-penstock-dictionary")["containers"][0])
    assert plain["PENSTOCK_FLIGHT_INSECURE"] == "true"
    assert "PENSTOCK_TLS_CA" not in plain
    documents = example("flight-tls")
    address = "grpc+tls://test-penstock-dictionary-0.test-penstock-dictionary.ns.svc:7879"
    for name in ("dictionary", "adaptor", "coordinator", "store", "query-engine"):
        spec = pod(documents, f"test-penstock-{name}")
        [volume] = [volume for volume in spec["volumes"] if volume["name"] == "flight-tls"]
        assert volume["secret"]["secretName"] == "penstock-flight"
        given = environment(spec["containers"][0])
        assert given["PENSTOCK_TLS_KEY"] == "/run/secrets/flight-tls/tls.key"
        assert "PENSTOCK_FLIGHT_INSECURE" not in given
        assert name == "dictionary" or given["PENSTOCK_DICTIONARIES"].startswith(address)
        assert "PENSTOCK_DATA_INSECURE" not in given
    unencrypted = environment(pod(render(*TRIAL), "test-penstock-store")["containers"][0])
    assert unencrypted["PENSTOCK_DATA_INSECURE"] == "true"
    spark = ["--values", str(CHART / "examples" / "spark-kubernetes.yaml"), "--set", "flight.tls.existingSecret=mine"]
    arguments = pod(render(*spark), "test-penstock-adaptor")["containers"][0]["args"]
    assert "--conf=spark.kubernetes.executor.secrets.mine=/run/secrets/flight-tls" in arguments


def test_rdma_beside_tls_is_a_decision():
    both = ("--values", str(CHART / "examples" / "rdma-device-plugin.yaml"), "--set", "flight.tls.existingSecret=mine")
    assert "rdma.unencrypted" in refusal(*both)
    documents = render(*both, "--set", "rdma.unencrypted=true")
    for name in ("store", "query-engine"):
        assert (
            environment(pod(documents, f"test-penstock-{name}")["containers"][0])["PENSTOCK_RDMA_UNENCRYPTED"] == "true"
        )


def test_passwords_of_the_brokers_are_files():
    documents = example("production")
    for spec in pods(documents):
        for container in spec["containers"]:
            given = environment(container)
            assert not [name for name in given if "PASSWORD" in name]
            assert given["PENSTOCK_SECRET_PROPERTIES_DIR"] == "/run/secrets/kafka"
            assert given["PENSTOCK_KAFKA_SECURITY_PROTOCOL"] == "SASL_SSL"
            assert given["PENSTOCK_KAFKA_SSL_CA_LOCATION"] == "/run/secrets/kafka-ca/ca.crt"


def test_stores_keep_their_shards_in_shared_memory_and_their_checkpoints_in_a_claim():
    documents = example("production")
    spec = pod(documents, "test-penstock-store")
    [regions] = [v for v in spec["volumes"] if v["name"] == "regions"]
    assert regions["emptyDir"] == {"medium": "Memory", "sizeLimit": "32Gi"}
    [claim] = find(documents, "StatefulSet", "test-penstock-store")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    shared = pod(example("shared-checkpoints"), "test-penstock-store")
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "penstock-shards"}} in shared["volumes"]


def test_a_colocated_engine_shares_memory_with_its_store():
    documents = example("colocated")
    store, engine = pod(documents, "test-penstock-store")["containers"]
    assert (store["name"], engine["name"]) == ("store", "query-engine")
    for container in (store, engine):
        assert {"name": "regions", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert next(m for m in engine["volumeMounts"] if m["name"] == "data")["subPath"] == "query-engine"
    assert environment(engine)["PENSTOCK_HTTP_PORT"] == "8081"
    assert not [d for d in documents if d["metadata"]["name"] == "test-penstock-query-engine"]
    sparql = find(documents, "Service", "test-penstock-sparql")["spec"]
    assert sparql["selector"]["app.kubernetes.io/component"] == "store"
    assert sparql["ports"][0]["targetPort"] == "http-engine"


def test_a_pod_with_rdma_asks_for_the_device_in_requests_and_limits():
    for name in ("store", "query-engine"):
        [container] = pod(example("rdma-device-plugin"), f"test-penstock-{name}")["containers"]
        for kind in ("requests", "limits"):
            assert container["resources"][kind]["rdma/hca_shared_devices_a"] == "1"
            assert container["resources"][kind]["hugepages-2Mi"] == "1Gi"
    spec = pod(example("rdma-dra"), "test-penstock-store")
    assert spec["resourceClaims"] == [{"name": "rdma", "resourceClaimTemplateName": "rdma-nic"}]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "rdma"}]
    plain = pod(render(*TRIAL), "test-penstock-store")
    assert "rdma" not in str(plain["containers"][0]["resources"])


def test_sparks_driver_may_start_executors_only_where_they_are_pods():
    local, pods_ = example("spark-local"), example("spark-kubernetes")
    assert not [d for d in local if d["kind"] == "Role"]
    assert find(pods_, "Role", "test-penstock-adaptor")["rules"]
    assert pod(local, "test-penstock-adaptor")["automountServiceAccountToken"] is False
    spec = pod(pods_, "test-penstock-adaptor")
    assert spec["automountServiceAccountToken"] is True
    [container] = spec["containers"]
    assert "--conf=spark.kubernetes.namespace=ns" in container["args"]
    assert "--conf=spark.executor.instances=4" in container["args"]
    assert "--conf=spark.kubernetes.executor.podTemplateFile=/run/executor/adaptor.yaml" in container["args"]
    assert executor_templates(pods_).keys() == {"adaptor.yaml"}
    assert not executor_templates(local)
    for template in executor_templates(example("bulk-load")).values():
        kubernetes_validate.validate(template, VERSIONS[-1], strict=True)


def test_a_property_of_spark_replaces_that_of_the_chart():
    documents = example("spark-kubernetes", "--set", r"adaptor.spark.conf.spark\.driver\.host=d.ns.svc")
    arguments = pod(documents, "test-penstock-adaptor")["containers"][0]["args"]
    assert [a for a in arguments if "spark.driver.host" in a] == ["--conf=spark.driver.host=d.ns.svc"]


def test_a_bulk_load_and_those_that_read_its_files_share_a_volume():
    documents = example("bulk-load", "--set", "http.tls.existingSecret=web,flight.tls.existingSecret=flight")
    readers = [
        *drivers_and_executors(documents),
        *(pod(documents, f"test-penstock-{n}") for n in ("coordinator", "store")),
    ]
    for spec in readers:
        assert {"name": "shared", "persistentVolumeClaim": {"claimName": "penstock-shared"}} in spec["volumes"]
        assert {"name": "shared", "mountPath": "/shared"} in spec["containers"][0]["volumeMounts"]
    for name in ("adaptor", "dispatcher", "query-engine", "dictionary"):
        assert "shared" not in [v["name"] for v in pod(documents, f"test-penstock-{name}")["volumes"]]
    engine = pod(example("bulk-load", "--set", "queryEngine.graph=engine"), "test-penstock-query-engine")
    assert "shared" in [v["name"] for v in engine["volumes"]]
    assert not [d for d in render(*TRIAL) if d["kind"] == "CronJob"]


def test_a_bulk_load_is_a_command_of_penstock():
    documents = example("bulk-load", "--set", "http.tls.existingSecret=web,bulkLoad.mapping=/shared/m.ttl")
    [spec] = [d["spec"] for d in documents if d["kind"] == "CronJob"]
    assert spec["suspend"]
    [container] = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    arguments = container["args"]
    assert "--conf=spark.kubernetes.driver.pod.name=$(PENSTOCK_INSTANCE)" in arguments
    for protection in ("authenticate", "network.crypto.enabled", "io.encryption.enabled"):
        assert f"--conf=spark.{protection}=true" in arguments
    given = arguments[arguments.index("/opt/penstock/adaptor/bulk_load.py") + 1 :]
    [command] = [c for c in get_command(app).commands.items() if c[0] == "load"]
    parsed = command[1].make_context("load", ["--spark", *given]).params
    assert (parsed["files"], str(parsed["mapping"])) == (["/shared/input/"], "/shared/m.ttl")
    assert parsed["cluster"] == "https://test-penstock-coordinator:8080"
    assert (parsed["staging"], parsed["graph"]) == ("/shared/penstock/$(JOB)", "http://ex.org/rooms")
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    for path in (parsed["token_file"], parsed["ca"]):
        assert str(path.parent) in mounts


def test_executors_reach_drivers_and_dictionaries_and_only_drivers_the_api_server():
    documents = example(
        "bulk-load", "--set", "adaptor.mode=spark,adaptor.spark.master=k8s://https://kubernetes.default.svc"
    )
    policies = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "NetworkPolicy"}

    def peers(name: str) -> set[str]:
        [rule] = policies[f"test-penstock-{name}"]["ingress"]
        found = [p["podSelector"]["matchLabels"] for p in rule["from"]]
        return {labels.get("app.kubernetes.io/component") for labels in found if labels}

    assert {"executor", "bulk-load", "adaptor"} <= peers("dictionary")
    assert peers("spark") == {"executor", "bulk-load", "adaptor"}
    [drivers] = policies["test-penstock-spark-driver"]["podSelector"]["matchExpressions"]
    assert drivers["values"] == ["adaptor", "bulk-load"]
    api = {"ports": [{"port": 443}, {"port": 6443}]}
    assert policies["test-penstock-spark-driver"]["egress"] == [api]
    assert api not in policies["test-penstock-default"]["egress"]
    for template in executor_templates(documents).values():
        assert template["metadata"]["labels"]["app.kubernetes.io/component"] == "executor"
        assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == "test"


def test_autoscaling_owns_the_number_of_replicas():
    for name, kind in (("autoscaling-hpa", "HorizontalPodAutoscaler"), ("autoscaling-keda", "ScaledObject")):
        documents = example(name)
        assert [d["metadata"]["name"] for d in documents if d["kind"] == kind] == [
            "test-penstock-adaptor",
            "test-penstock-query-engine",
        ]
        assert "replicas" not in find(documents, "Deployment", "test-penstock-adaptor")["spec"]
        assert "replicas" not in find(documents, "StatefulSet", "test-penstock-query-engine")["spec"]


def test_policies_deny_by_default_and_admit_the_parts_to_each_other():
    documents = render(*TRIAL)
    policies = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "NetworkPolicy"}
    assert policies["test-penstock-default"]["policyTypes"] == ["Ingress", "Egress"]
    [rule] = policies["test-penstock-store"]["ingress"]
    peers = [p["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for p in rule["from"]]
    assert peers == ["store", "query-engine"]
    assert [p["port"] for p in rule["ports"]] == [7880, 7881]
    assert not [d for d in render(*TRIAL, "--set", "networkPolicy.enabled=false") if d["kind"] == "NetworkPolicy"]


def test_topics_of_strimzi_are_those_of_the_cluster():
    made = {
        d["spec"]["topicName"]: (
            d["spec"]["partitions"],
            d["spec"]["config"]["cleanup.policy"],
            d["spec"]["config"].get("compression.type", "producer"),
        )
        for d in example("strimzi")
        if d["kind"] == "KafkaTopic"
    }
    expected = {
        t.name: (t.partitions, t.cleanup, t.compression) for t in ClusterTopics(TopicNames("sensors"), 4, 8).all()
    }
    assert made == expected | {
        "sensors.dispatcher": (1, "compact", "producer")
    }  # which the dispatcher creates otherwise


def test_users_of_strimzi_have_the_acls_of_the_services():
    documents = render(
        "--values", str(CHART / "examples/strimzi.yaml"), "--set", "kafka.strimzi.user.resultsTopics={reports}"
    )
    users = {d["metadata"]["name"].removeprefix("test-penstock-"): d for d in documents if d["kind"] == "KafkaUser"}
    assert set(users) == set(chart_acls.USERS) - {"spark-adaptor"}
    cluster = Cluster("sensors", results=("reports",))
    for name, user in users.items():
        required = [acl for principal in chart_acls.USERS[name] for acl in required_acls(principal, cluster)]
        expected = [yaml.safe_load(strimzi_rule(acl)) for acl in required]
        made = user["spec"]["authorization"]["acls"]
        assert sorted(json.dumps(rule, sort_keys=True) for rule in made) == sorted(
            json.dumps(rule, sort_keys=True) for rule in expected
        ), name
    assert chart_acls.FILE.read_text() == chart_acls.text(), "run `python -m tools.chart_acls`"


def test_each_component_has_the_secret_of_its_user():
    for spec in pods(example("strimzi")):
        for container in spec["containers"]:
            user = f"test-penstock-{container['name']}"
            [mount] = [m for m in container["volumeMounts"] if m["mountPath"] == "/run/secrets/kafka"]
            [volume] = [v for v in spec["volumes"] if v["name"] == mount["name"]]
            assert volume["secret"]["secretName"] == user
            assert {"name": "PENSTOCK_KAFKA_SASL_USERNAME", "value": user} in container["env"]
    tls = render("--values", str(CHART / "examples/strimzi.yaml"), "--set", "kafka.strimzi.user.authentication=tls")
    [volume] = [v for v in pod(tls, "test-penstock-dispatcher")["volumes"] if v["name"] == "kafka-user-dispatcher"]
    assert [item["path"] for item in volume["secret"]["items"]] == ["user.crt", "user.key"]


def test_alert_rules_link_to_the_runbook():
    rule = find(example("monitoring"), "PrometheusRule", "test-penstock")
    links = [r["annotations"]["runbook_url"] for r in rule["spec"]["groups"][0]["rules"]]
    assert links
    assert all(link.startswith("https://docs.example.org/how-to/alerts/#penstock") for link in links)
    boards = [d for d in example("monitoring") if d["metadata"]["labels"].get("grafana_dashboard") == "1"]
    assert len(boards) == 2


def template(documents: list[dict[str, Any]], kind: str, component: str) -> dict[str, Any]:
    return find(documents, kind, f"test-penstock-{component}")["spec"]["template"]


def config(documents: list[dict[str, Any]], kind: str, component: str) -> str:
    return template(documents, kind, component)["metadata"]["annotations"]["penstock/config"]


def test_a_change_of_a_setting_rolls_the_pods():
    existing = (*TRIAL, "--set", "secret.existingSecret=mine")
    before, same = render(*existing), render(*existing, "--set", "ingress.annotations.a=b")
    after = render(*existing, "--set", "log.level=debug", "--set", "kafka.embedded.localPort=9095")
    for kind, component in (("StatefulSet", "store"), ("StatefulSet", "kafka"), ("Deployment", "adaptor")):
        assert template(before, kind, component) == template(same, kind, component)
        assert template(before, kind, component) != template(after, kind, component)
    assert config(before, "StatefulSet", "kafka") != config(after, "StatefulSet", "kafka")


def test_pods_restart_with_the_secret_that_they_read_at_the_start():
    first, second = (render(*TRIAL, "--set", f"secret.key={key}") for key in ("one", "two"))  # each makes a secret
    for component in ("store", "query-engine"):
        assert config(first, "StatefulSet", component) != config(second, "StatefulSet", component)
    assert template(first, "Deployment", "adaptor") == template(second, "Deployment", "adaptor")
    stores, engines = (config(first, "StatefulSet", component) for component in ("store", "query-engine"))
    assert stores == engines


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ((), {"store": "40", "query-engine": "40"}),
        (("store.terminationGracePeriodSeconds=90",), {"store": "60", "query-engine": "40"}),
        (("colocate=true", "store.terminationGracePeriodSeconds=90"), {"store": "60", "query-engine": "60"}),
        (("store.settings.leave_s=20",), {"store": "20", "query-engine": "40"}),
        (("settings.leave_s=20",), {"store": "20", "query-engine": "20"}),
    ],
)
def test_a_handover_may_take_most_of_the_grace_period(values: tuple[str, ...], seconds: dict[str, str]):
    documents = render(*TRIAL, *[part for value in values for part in ("--set", value)])
    found = {
        container["name"]: [e["value"] for e in container["env"] if e["name"] == "PENSTOCK_LEAVE_S"]
        for pod in pods(documents)
        for container in pod["containers"]
        if "env" in container
    }
    assert {name: [value] for name, value in seconds.items()}.items() <= found.items()
    assert found["dispatcher"] == (["20"] if "settings.leave_s=20" in values else [])


def test_streams_and_queries_of_the_values_are_declared_after_an_install(tmp_path: Path, monkeypatch):
    documents = render("--values", str(CHART / "examples" / "trial.yaml"))
    data = find(documents, "ConfigMap", "test-penstock-declarations")["data"]
    for name, text in data.items():
        (tmp_path / name).write_text(text)
    job = find(documents, "Job", "test-penstock-declarations")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-install,post-upgrade"
    [coordinators] = [
        e["value"] for e in job["spec"]["template"]["spec"]["containers"][0]["env"] if e["name"] == "COORDINATORS"
    ]
    assert coordinators == "http://test-penstock-coordinator:8080"
    with AnsweringServer([503, 200, 200]) as server:
        monkeypatch.setenv("COORDINATORS", server.url)
        monkeypatch.setenv("TOKEN", "secret")
        script = runpy.run_path(str(tmp_path / "declare.py"))
        script["put"].__globals__["PAUSE_S"] = 0.01
        assert script["main"](tmp_path) == 0
    (unavailable, _, first, token), declared, (path, text, _, _) = server.requests
    assert (unavailable, first, token) == ("/streams/motion", "PUT", "Bearer secret")
    settings = json.loads(declared[1])
    assert settings.pop("iri") == "urn:motion"
    with penstock.Engine() as engine:
        engine.declare_stream("urn:motion", **settings)
        assert path == f"/queries/{engine.register(text.decode()).name}"


def test_a_declaration_that_is_refused_ends_the_job_with_its_message(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "streams.json").write_text('{"a": {"iri": "urn:a"}}')
    (tmp_path / "queries.json").write_text("{}")
    with AnsweringServer([400]) as server:
        monkeypatch.setenv("COORDINATORS", server.url)
        monkeypatch.delenv("TOKEN", raising=False)
        assert runpy.run_path(str(CHART / "files" / "declare.py"))["main"](tmp_path) == 1
    assert capsys.readouterr().err == "/streams/a: 400 said\n"


def test_the_job_that_declares_reaches_coordinators_where_clients_are_restricted():
    clients = ("--set-json", 'networkPolicy.clients=[{"ipBlock": {"cidr": "192.0.2.0/24"}}]')
    documents = render("--values", str(CHART / "examples" / "trial.yaml"), *clients)
    [rule] = find(documents, "NetworkPolicy", "test-penstock-coordinator-http")["spec"]["ingress"]
    admitted = [peer["podSelector"]["matchLabels"] for peer in rule["from"] if "podSelector" in peer]
    job = find(documents, "Job", "test-penstock-declarations")
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert any(peer.items() <= labels.items() for peer in admitted)


def test_there_is_one_dispatcher_also_during_an_upgrade():
    dispatcher = find(render(*TRIAL), "Deployment", "test-penstock-dispatcher")["spec"]
    assert (dispatcher["replicas"], dispatcher["strategy"]) == (1, {"type": "Recreate"})
    reason = refusal(*TRIAL, "--set", "dispatcher.replicas=2", "--skip-schema-validation")
    assert "dispatcher.replicas is 2: a cluster has one dispatcher" in reason


def test_the_broker_of_a_trial_tells_clients_of_a_forwarded_port_to_use_it():
    documents = render(*TRIAL, "--set", "kafka.embedded.localPort=19094")
    text = find(documents, "ConfigMap", "test-penstock-kafka")["data"]["server.properties"]
    properties = dict(line.split("=", 1) for line in text.splitlines())
    assert "FORWARDED://127.0.0.1:19094" in properties["listeners"].split(",")  # no other pod reaches it
    assert "FORWARDED://localhost:19094" in properties["advertised.listeners"].split(",")
    assert "INSIDE://test-penstock-kafka:9092" in properties["advertised.listeners"].split(",")


def test_a_trial_fits_on_a_small_node():
    requests = [
        container["resources"]["requests"] for spec in pods(example("trial")) for container in spec["containers"]
    ]
    assert sum(int(request["cpu"].removesuffix("m")) for request in requests) <= 500
    assert sum(int(request["memory"].removesuffix("Mi")) for request in requests) <= 2048


def test_the_lines_of_the_readme_name_what_the_trial_has():
    install, produce, consume = readme.lines()
    program, verb, release, chart, flag, values, _, image, wait = install.split()
    assert (program, verb, flag, wait) == ("helm", "install", "-f", "--wait")
    done = helm("template", release, str(ROOT / chart), flag, str(ROOT / values), "--set", image)
    documents = [document for document in yaml.safe_load_all(done.stdout) if document]
    assert find(documents, "StatefulSet", "penstock-kafka")
    assert all("penstock-kafka-0 -- /opt/kafka/bin/kafka-console-" in line for line in (produce, consume))
    [stream] = json.loads(find(documents, "ConfigMap", "penstock-declarations")["data"]["streams.json"])
    names = TopicNames("penstock")
    assert produce.endswith(f"--topic {names.events(stream)}")
    assert f"--topic {names.results} " in consume
    assert {c["image"].partition("/")[0] for c in pod(documents, "penstock-store")["containers"]} == {"REGISTRY"}


def test_the_test_of_a_release_reads_an_answer_as_clients_get_it():
    script = runpy.run_path(str(CHART / "tests" / "answer.py"))
    with penstock.Engine() as engine:
        engine.declare_stream("http://x/s", batch_ms=100, timing="all")
        window = "FROM STREAM <http://x/s> [RANGE 1s STEP 1s]"
        query = engine.register(f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) {window} WHERE {{ ?s ?p ?o }}")
        engine.push("http://x/s", "<urn:a> <urn:p> <urn:o> .", 500)
        engine.advance("http://x/s", 2000)
        assert [(e.time, script["number"](e.answer)) for e in query.poll()] == [(1000, 1), (2000, 0)]


def test_a_standby_coordinator_reaches_the_active_one_where_clients_are_restricted():
    documents = render(*TRIAL, "--set-json", 'networkPolicy.clients=[{"ipBlock":{"cidr":"192.0.2.0/24"}}]')
    [container] = pod(documents, "test-penstock-coordinator")["containers"]
    [address] = [e for e in container["env"] if e["name"] == "PENSTOCK_ADVERTISED_HOST"]
    assert address["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    [rule] = find(documents, "NetworkPolicy", "test-penstock-coordinator-http")["spec"]["ingress"]
    client, standby = rule["from"]
    assert client == {"ipBlock": {"cidr": "192.0.2.0/24"}}
    assert standby["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "coordinator"
    [rule] = find(documents, "NetworkPolicy", "test-penstock-query-engine-http")["spec"]["ingress"]
    assert rule["from"] == [client]


MISTAKES = {
    "a word for a number": (["store.replicas=two"], "store/replicas"),
    "no stores": (["store.replicas=0"], "store/replicas"),
    "an unknown value": (["stores.replicas=2"], "stores"),
    "an unknown value in a block": (["store.replica=2"], "replica"),
    "a level of logs": (["log.level=verbose"], "log/level"),
    "a format of logs": (["log.format=xml"], "log/format"),
    "a prefix with a dot": (["cluster.prefix=a.b"], "cluster/prefix"),
    "too many shards": (["cluster.shards=5000"], "cluster/shards"),
    "brokers without a port": (["kafka.embedded.enabled=false", "kafka.bootstrapServers=kafka"], "bootstrapServers"),
    "a port that is none": (["kafka.port=99999"], "kafka/port"),
    "a password in the open": (["kafka.properties.sasl\\.password=x"], "sasl.password"),
    "a mode of the adaptor": (["adaptor.mode=flink"], "adaptor/mode"),
    "a transport": (["queryEngine.transport=udp"], "queryEngine/transport"),
    "a graph": (["queryEngine.graph=none"], "queryEngine/graph"),
    "an execution": (["queryEngine.execution=fast"], "queryEngine/execution"),
    "a size": (["store.sharedMemory=2 GB"], "store/sharedMemory"),
    "a size of a claim": (["store.persistence.size=big"], "store/persistence/size"),
    "an access mode": (["store.persistence.accessModes[0]=RWO"], "accessModes"),
    "a pull policy": (["image.pullPolicy=Sometimes"], "image/pullPolicy"),
    "a digest": (["image.digest=abc"], "image/digest"),
    "a resource without a vendor": (["rdma.resourceName=hca"], "rdma/resourceName"),
    "a mode of RDMA": (["rdma.mode=sriov"], "rdma/mode"),
    "a kind of autoscaling": (["adaptor.autoscaling.kind=vpa"], "autoscaling/kind"),
    "a boolean as text": (["colocate=maybe"], "colocate"),
    "a type of service": (["coordinator.service.type=Public"], "coordinator/service/type"),
    "a setting in capitals": (["settings.GIVE_UP_S=1"], "GIVE_UP_S"),
    "an interval": (["monitoring.podMonitor.interval=often"], "interval"),
    "a short grace period": (["store.terminationGracePeriodSeconds=1"], "terminationGracePeriodSeconds"),
    "a staging folder of its own": (["bulkLoad.staging=/tmp/load"], "bulkLoad/staging"),
    "two dispatchers": (["dispatcher.replicas=2"], "dispatcher/replicas"),
    "a privileged port": (["kafka.embedded.localPort=80"], "kafka/embedded/localPort"),
    "an issuer over HTTP": (["http.auth.oidc.issuer=http://a.example"], "http/auth/oidc/issuer"),
    "a role of a claim": (["http.auth.oidc.roles.ops=root"], "http/auth/oidc/roles/ops"),
    "a leeway of an hour": (["http.auth.oidc.leewaySeconds=3600"], "http/auth/oidc/leewaySeconds"),
    "a negative rate": (["http.auth.oidc.rate=-1"], "http/auth/oidc/rate"),
    "a size of bodies with a unit": (["http.auth.oidc.maxBodyMb=8Mi"], "http/auth/oidc/maxBodyMb"),
    # what only the templates can know
    "a port of the broker": (["kafka.embedded.localPort=9092"], "kafka.embedded.localPort is 9092"),
    "no broker": (["kafka.embedded.enabled=false"], "kafka.bootstrapServers is empty"),
    "two kinds of broker": (["kafka.bootstrapServers=a:1"], "exclude each other"),
    "more stores than shards": (["store.replicas=5"], "store.replicas is 5 but cluster.shards is 4"),
    "more engines than buckets": (["queryEngine.replicas=9"], "queryEngine.replicas is 9 but cluster.buckets is 8"),
    "RDMA without RDMA": (["queryEngine.transport=rdma"], "rdma.enabled is false"),
    "shared memory of other pods": (["queryEngine.transport=shm"], "colocate is false"),
    "two drivers": (["adaptor.mode=spark", "adaptor.replicas=2"], "adaptor.replicas must be 1"),
    "DRA without a template": (["rdma.enabled=true", "rdma.mode=dra"], "rdma.claimTemplate is empty"),
    "KEDA without Prometheus": (
        ["adaptor.autoscaling.enabled=true", "adaptor.autoscaling.kind=keda"],
        "adaptor.autoscaling.prometheus is empty",
    ),
    "an issuer without a name": (["http.tls.certManager.enabled=true"], "issuerRef.name is empty"),
    "an issuer of tokens for all": (["http.auth.oidc.issuer=https://a.example"], "http.auth.oidc.audience is empty"),
    "an issuer without roles": (
        ["http.auth.oidc.issuer=https://a.example", "http.auth.oidc.audience=a"],
        "http.auth.oidc.roles is empty",
    ),
    "an audience without an issuer": (["http.auth.oidc.audience=a"], "http.auth.oidc.issuer is empty"),
    "a limit without an issuer": (["http.auth.oidc.rate=5"], "http.auth.oidc.issuer is empty"),
    "an issuer without authentication": (
        ["http.auth.enabled=false", "http.auth.oidc.issuer=https://a.example"],
        "http.auth.oidc.issuer has no meaning",
    ),
    "a handover longer than the grace period": (
        ["store.settings.leave_s=60"],
        "store.settings.leave_s is 60, but pods are killed after 60 s",
    ),
    "a stream without an IRI": (["streams.a.batch_ms=100"], "streams/a"),
    "a query that is no text": (["queries.a.text=x"], "queries/a"),
    "an ingress without a host": (["ingress.enabled=true"], "ingress.host is empty"),
    "a setting of the chart": (["store.settings.data_dir=/x"], "store.settings.data_dir is set by the chart"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_by_the_name_of_the_value(mistake: str):
    changes, named = MISTAKES[mistake]
    text = refusal(*TRIAL, *[part for change in changes for part in ("--set", change)])
    assert named.replace("/", ".") in text.replace("/", "."), text
