"""The tutorial and the how-to pages of the cluster do what they say, with `penstock up` and a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.test_up import started
from tests.support.pages import run_page

from penstock.broker import kafka_jars
from penstock.broker.java import find_java
from penstock.errors import StorageError

pytestmark = pytest.mark.xdist_group("broker")
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["tutorials/kafka.md", "how-to/consume-results.md", "how-to/register-by-topic.md"]


def test_every_block_of_the_kafka_pages_works(tmp_path):
    try:
        find_java()
        kafka_jars()
    except StorageError as error:
        pytest.skip(str(error))
    with started(tmp_path / "cluster", tmp_path / "up.txt") as up:
        assert "Literal('hello')" in up.first_event(), "the answers of another query are in the results topic, too"
        for page in PAGES:
            run_page(
                DOCS / page,
                tmp_path,
                lambda text: text.replace("localhost:9092", f"localhost:{up.ports[0]}"),
                skip=("penstock up",),
            )
