"""What the README shows does what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from penstock.broker.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PLAIN = re.search(r"## On the command line\n+```\n(.*?)```", README, re.DOTALL)
assert PLAIN is not None
COMMANDS = [line.partition("   #")[0] for line in PLAIN[1].replace("\\\n", " ").splitlines()]


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's relative paths mean what they mean in a checkout."""
    made = tmp_path_factory.mktemp("checkout")
    (made / "examples").symlink_to(ROOT / "examples")
    return made


def test_the_program_prints_what_its_comment_says(folder: Path) -> None:
    found = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert found is not None
    comment = re.search(r"print\(.*\)  # (.*)", found[1])
    assert comment is not None
    done = run(sys.executable, "-c", found[1], folder=folder)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, comment[1], "")


@pytest.mark.xdist_group("readme")
@pytest.mark.parametrize("line", [line for line in COMMANDS if " serve " not in line])
def test_each_command_works_in_turn(folder: Path, line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "penstock"
    done = run(sys.executable, "-m", "penstock", *arguments, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_the_make_targets_exist() -> None:
    targets = sorted(set(re.findall(r"^make ([a-z-]+)", README, re.MULTILINE)))
    assert targets
    done = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.xdist_group("readme")
def test_serve_answers(folder: Path) -> None:
    [line] = [line for line in COMMANDS if " serve " in line]
    port = free_port()
    command = [sys.executable, "-m", "penstock", *shlex.split(line)[1:], "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not answers(f"http://127.0.0.1:{port}/health/live"):
            assert time.monotonic() < deadline
            assert process.poll() is None
        process.terminate()
        assert process.wait(60) == 0


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1) as response:
            return response.status == 200
    except URLError:
        time.sleep(0.05)
        return False
