"""A query set of a cluster of processes, on a real broker: members come and go (by records and over HTTP) while query
engines are killed; each evaluation of a member is committed once, and is right. The same for a set with parts in both
engines.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict

import httpx
import pytest

pytest.importorskip("confluent_kafka")

from penstock.client import Client
from support.cluster_load import IRI, SETTINGS, Load, small

pytestmark = pytest.mark.xdist_group("broker")
RANGE, STEP = 1_000, 500
TEXT = f"REGISTER QUERY things (?thing) AS SELECT ?v FROM STREAM <{IRI}> [RANGE 1s STEP 500ms] WHERE {{ ?thing <http://x/p> ?v }}"


def row(number: int) -> dict[str, str]:
    return {"thing": f"http://x/{number}"}


def value_of(row: dict[str, dict[str, str]]) -> int:
    return int(row["v"]["value"])


def right(sent: list[int], number: int, time_ms: int) -> list[int]:
    """What a member for a thing has at an instant: the values of the last second."""
    return [at for at in sent if time_ms - RANGE < at <= time_ms and at % 5 == number]


@pytest.mark.parametrize("parts", [1, 4])
def test_members_of_a_set_while_engines_are_killed(parts, broker, topic_prefix, tmp_path):
    servers = broker.bootstrap_servers
    load = Load(servers, topic_prefix, queries={})
    found: dict[str, dict[int, list[int]]] = defaultdict(dict)
    doubled = []
    with (
        small(servers, topic_prefix, tmp_path, engines=2) as cluster,
        Client(servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
    ):
        client.declare_stream(IRI, "s", **SETTINGS)
        things = client.register_set(TEXT, [row(0), row(1)], report="every", key="thing", parts=parts)
        assert httpx.get(f"{cluster.url}/queries/things").json()["parts"] == parts
        engines = sorted(name for name in cluster.services if "engine" in name)
        for i in range(6):
            load.push(150, 2.0)
            if i == 2:
                things.add([row(2)])
                things.remove([row(1)])
                things.add([{"thing": "no IRI"}])
                over_http = httpx.post(f"{cluster.url}/queries/things/members?key=thing", content=json.dumps(row(3)))
                assert over_http.json() == {"rows": 1}
            cluster.kill(engines[i % 2])
            load.push(50, 1.0)
            cluster.watch()
        last = None
        deadline = time.monotonic() + 300
        for answered in client.watch():
            if answered is not None:
                values = sorted(map(value_of, answered.line["results"]["bindings"]))
                member = answered.line["member"]
                doubled += [(member, answered.time)] if answered.time in found[member] else []
                found[member][answered.time] = values
            elif last is None:  # an engine that catches up learns of the changes at an instant of its own choice
                ends = {member: max(times) for member, times in found.items()}
                changed = set(ends) >= {"http://x/1", "http://x/2"} and ends["http://x/1"] < ends["http://x/2"]
                if changed and httpx.get(f"{cluster.url}/queries/things/members?limit=0").json().get("count") == 3:
                    last = load.end() // STEP * STEP - STEP
                else:
                    load.push(50, 0.5)
            if last is not None and all(last in found[f"http://x/{number}"] for number in (0, 2, 3)):
                break
            assert time.monotonic() < deadline, {member: max(times, default=None) for member, times in found.items()}
        letters, polled = client.dead_letters(), defaultdict[str, list[int]](list)
        while any(len(polled[member]) < len(times) for member, times in found.items()):
            assert time.monotonic() < deadline, polled
            for evaluation in things.poll(timeout_s=1):
                polled[str(evaluation.member)].append(evaluation.time)
        listed = httpx.get(f"{cluster.url}/queries/things/members").json()
    sent = [at for at, _ in load.sent]
    assert doubled == []
    assert all(times == sorted(set(times)) for times in polled.values())
    assert (listed["count"], sorted(each["member"] for each in listed["members"])) == (
        3,
        [f"http://x/{number}" for number in (0, 2, 3)],
    )
    assert sorted(found) == ["http://x/0", "http://x/1", "http://x/2", "http://x/3"]
    for member, times in found.items():
        number, first = int(member[-1]), min(times)
        assert sorted(times) == list(range(first, max(times) + STEP, STEP)), f"{member}: lost"
        different = [t for t in times if t - RANGE >= first and times[t] != right(sent, number, t)]
        assert different == [], member
    assert max(found["http://x/1"]) < last
    assert [(letter.stream, letter.data) for letter in letters] == [("things", b'{"thing": "no IRI"}')]
