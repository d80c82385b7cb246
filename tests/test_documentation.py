"""Every Python example that we show runs as it stands, in an empty folder, without a key, and without the network."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackfield_testkit.replies import text
from jackfield_testkit.server import FakeOpenAI

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "core/README.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "plugins/*/*/README.md",
    "examples/**/*.md",
)
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w+-]*)[^\n]*\n(?P<body>.*?)^ *(?P=fence) *$", re.M | re.S
)

# Runs an example; whatever would leave the machine is an error, so that no example depends on the world.
RUNNER = """
import runpy, sys

def stay_here(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
        away = isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1"))
    else:
        away = event == "socket.getaddrinfo" and arguments[0] not in (None, "localhost", "127.0.0.1", "::1")
    if away:
        raise RuntimeError(f"the example wants to leave the machine: {event} {arguments}")

sys.addaudithook(stay_here)
sys.path.pop(0)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@dataclass(frozen=True)
class Example:
    """A fenced Python block; `line` is that of its first line of code."""

    document: Path
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def examples_in(document: Path, content: str) -> Iterator[Example]:
    """The Python blocks of a document."""
    for block in FENCE.finditer(content):
        if block["language"] == "python":
            indent = len(block["indent"])
            code = "".join(line[indent:] if line.strip() else line for line in block["body"].splitlines(keepends=True))
            yield Example(document, content.count("\n", 0, block.start("body")) + 1, code)


def all_examples() -> list[Example]:
    """Those of every document, in order."""
    paths = sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)})
    return [
        example for path in paths for example in examples_in(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    ]


@pytest.fixture(scope="module")
def model_server() -> Iterator[FakeOpenAI]:
    """A server for the examples that ask a model of OpenAI's kind; it always says the same."""
    with FakeOpenAI(default=text("A recorded answer.")) as server:
        yield server


@pytest.mark.parametrize("example", all_examples(), ids=str)
def test_an_example_runs_as_it_stands(
    example: Example, execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path, model_server: FakeOpenAI
) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    if "examples/" in example.code:
        # The documents that the README talks about, where a reader in the repository has them.
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    script = folder / "example.py"
    # Empty lines before it, so that a traceback has the line of the document.
    script.write_text("\n" * (example.line - 1) + example.code, encoding="utf-8")
    env = {
        **clean_env,
        "OPENAI_API_KEY": "sk-example",
        "OPENAI_BASE_URL": model_server.url,
        "OPENAI_MODEL": "test-model",
    }
    execute([sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", RUNNER, script], cwd=folder, env=env)


def test_the_runner_lets_no_example_leave_the_machine(
    execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "example.py"
    script.write_text("import socket\nsocket.socket().connect(('192.0.2.1', 9))")
    done = execute([sys.executable, "-c", RUNNER, script], env=clean_env, cwd=tmp_path, check=False)
    assert "wants to leave the machine" in done.stderr


def test_every_document_of_a_distribution_is_looked_at(distributions: list[Any]) -> None:
    looked_at = {path for pattern in DOCUMENTS for path in ROOT.glob(pattern)}
    assert {one.folder / "README.md" for one in distributions} <= looked_at


def test_every_distribution_shows_an_example(distribution: Any) -> None:
    readme = (distribution.folder / "README.md").read_text(encoding="utf-8")
    assert list(examples_in(Path("README.md"), readme)), "a README has an example that runs"


def test_the_changelog_has_every_distribution(distributions: list[Any], root: Path) -> None:
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^- \*\*(jackfield[\w-]*)\*\*", changelog, re.MULTILINE))
    assert named == {one.name for one in distributions}
