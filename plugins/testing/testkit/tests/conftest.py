"""What the tests share.

A client that speaks plain sockets, so that what the server does to a connection is seen as it is; and a runner of
suites, so that one that must fail does not fail here.
"""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import json
import os
import shutil
import socket
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import jackfield_testkit
from jackfield_testkit.forks import Forks
from jackfield_testkit.server import FakeOpenAI


@dataclass(frozen=True)
class Answer:
    """A response as it came.

    `pieces` are the chunks of the transfer encoding, or the body as one piece; `broken` is how the connection ended
    before the response did: `reset`, `closed`, `silent`, or '' if it did not.
    """

    status: int
    headers: dict[str, str]
    pieces: list[bytes]
    broken: str

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def events(self) -> list[str]:
        """What follows `data:`, of each server-sent event."""
        lines = self.body.decode().splitlines()
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(event) for event in self.events if event != "[DONE]"]

    @property
    def text(self) -> str:
        return "".join(
            choice["delta"].get("content") or "" for chunk in self.chunks for choice in chunk.get("choices", ())
        )


class Client:
    """One connection."""

    def __init__(self, server: FakeOpenAI, timeout_s: float = 5) -> None:
        port = int(server.origin.rpartition(":")[2])
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self.file = self.socket.makefile("rb")

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def send(self, body: Any, *, method: str = "POST", path: str = "/v1/chat/completions", head: str = "") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        length = "" if "Transfer-Encoding" in head else f"Content-Length: {len(data)}\r\n"
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: test\r\n{length}{head}\r\n".encode() + data)

    def ask(self, *, stream: bool = True, usage: bool = False, **more: Any) -> Answer:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **more}
        self.send({**body, "stream_options": {"include_usage": True}} if usage else body)
        return self.receive()

    def receive(self) -> Answer:
        status = int(self.file.readline().split()[1])
        headers = {}
        while line := self.file.readline().strip().decode("latin-1"):
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        pieces: list[bytes] = []
        broken = ""
        try:
            broken = "" if self._read_into(pieces, headers) else "closed"
        except ConnectionResetError:
            broken = "reset"
        except TimeoutError:
            broken = "silent"
        return Answer(status, headers, pieces, broken)

    def _read_into(self, pieces: list[bytes], headers: dict[str, str]) -> bool:
        """Whether the response came to its end."""
        if headers.get("transfer-encoding") != "chunked":
            wanted = int(headers["content-length"])
            pieces.append(self.file.read(wanted))
            return len(pieces[0]) == wanted
        while line := self.file.readline():
            piece = self.file.read(int(line, 16) + 2)[:-2]
            if not piece:
                return True
            pieces.append(piece)
        return False


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A running server."""
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def connect(server: FakeOpenAI) -> Iterator[Callable[..., Client]]:
    """Opens connections to the server, which are closed at the end."""
    clients: list[Client] = []

    def connect(timeout_s: float = 5) -> Client:
        clients.append(Client(server, timeout_s))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[..., Client]) -> Client:
    """One connection to the server."""
    return connect()


# --- running a suite on something that is made to fail it ---


@pytest.fixture(scope="session")
def installed_zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the zoo with a RECORD, as an installer leaves it: for hosts that load only what is proven."""
    return _installed("zoo", tmp_path_factory)


@pytest.fixture(scope="session")
def installed_acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of the distribution that the examples in docstrings are about."""
    return _installed("acme", tmp_path_factory)


def _installed(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(name) / "site"
    shutil.copytree(Path(__file__).parent / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    lines = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).decode().rstrip("=")
        lines.append(f"{file.relative_to(folder).as_posix()},sha256={digest},{file.stat().st_size}\n")
    (metadata,) = folder.glob("*.dist-info")
    (metadata / "RECORD").write_text("".join([*lines, f"{metadata.name}/RECORD,,\n"]), encoding="utf-8")
    return folder


_PARSING = threading.Lock()  # Python 3.11 counts the depth of trees for all threads together, and may refuse one


@functools.cache
def checks_of(path: Path) -> dict[int, str]:
    """Return the name of each place at which a module of suites fails or skips a test, by all of its lines.

    The name is that of the function or method, with a number if the function has several such places.
    """
    found: dict[str, list[ast.stmt | ast.expr]] = {}

    def walk(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = function or node.name
        kind = _kind_of(node) if function else ""
        if kind and isinstance(node, ast.stmt | ast.expr):
            found.setdefault(f"{function} skips" if kind == "skip" else function, []).append(node)
        for child in ast.iter_child_nodes(node):
            walk(child, function)

    with _PARSING:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    walk(tree, "")
    lines: dict[int, str] = {}
    for name, nodes in found.items():
        for number, node in enumerate(nodes, start=1):
            last = node.items[-1].context_expr if isinstance(node, ast.With) else node
            several = f"{name} {number}" if len(nodes) > 1 else name
            lines |= dict.fromkeys(range(node.lineno, (last.end_lineno or 0) + 1), several)
    return lines


def _kind_of(node: ast.AST) -> str:
    match node:
        case ast.Assert() | ast.Raise(exc=ast.Call(func=ast.Name("AssertionError"))):
            return "assert"
        case ast.With(items=[ast.withitem(ast.Call(func=ast.Attribute(ast.Name("pytest"), "raises"))), *_]):
            return "assert"
        case ast.Call(func=ast.Attribute(ast.Name("pytest"), "fail" | "skip" as kind)):
            return kind
    return ""


class Checks:
    """The checks of a suite, each with an example that fails at it: a file of `checks/`.

    Attributes:
        modules: The modules of the suite.
        shown: By the name of a check, the example, and its law if that is not the function of the check.
        not_shown: Checks that no example fails at, each with the reason.
        cases: By the name of a law with its parameters, an example that fails it with just these.
    """

    def __init__(self, name: str) -> None:
        text = (Path(__file__).parent / "checks" / f"{name}.toml").read_text(encoding="utf-8")
        told = tomllib.loads(text)
        self.modules: list[str] = told["modules"]
        self.shown: dict[str, str] = told["shown"]
        self.not_shown: dict[str, str] = told.get("not_shown", {})
        self.cases: dict[str, str] = told.get("cases", {})

    def with_laws(self, broken: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return each example with a law to run: those of the checks, and the given ones."""
        pairs = [(check, *by.partition(" ")[::2]) for check, by in self.shown.items()]
        shown = [(example, law or check.partition(" ")[0]) for check, example, law in pairs]
        with_parameters = [(example, case) for case, example in self.cases.items()]
        return list(dict.fromkeys([*broken.items(), *shown, *with_parameters]))

    def not_failed(self, *outcomes: Outcomes) -> dict[str, str]:
        """Return the checks at which their example does not fail, and the cases that it passes."""
        fired = {check: by.partition(" ")[0] for check, by in self.shown.items()}
        passed = {case: by for case, by in self.cases.items() if not any(one.failed(by, case) for one in outcomes)}
        return passed | {
            check: example for check, example in fired.items() if not any(one.fired(example, check) for one in outcomes)
        }

    def unknown(self) -> set[str]:
        """Return the checks that have no example, and those of the file that the suite does not have."""
        folder = Path(jackfield_testkit.__file__).parent / "suites"
        existing = {check for module in self.modules for check in checks_of(folder / f"{module}.py").values()}
        return existing ^ (self.shown.keys() | self.not_shown.keys())


@pytest.fixture
def read_checks() -> Callable[[str], Checks]:
    """Return what reads the checks of a suite by its name."""
    return Checks


class Outcomes:
    """How the tests of a run ended: for each class, the tests by outcome, without their parameters."""

    def __init__(self, report: Path) -> None:
        self._ends: dict[tuple[str, str], set[str]] = {}
        self._fired: dict[tuple[str, str], set[str]] = {}
        self._cases: dict[tuple[str, str], str] = {}
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name = case.attrib["classname"].rpartition(".")[2]
            places = case.find("properties/property[@name='places']")
            for place in places.attrib["value"].split() if places is not None else ():
                file, _, line = place.rpartition(":")
                check = checks_of(Path(file)).get(int(line), "")
                self._fired.setdefault((name, case.attrib["name"]), set()).add(check)
            outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
            kind = next((child.attrib.get("type", "") for child in case if child.tag == "skipped"), "")
            outcome = "xfailed" if kind == "pytest.xfail" else outcome
            found = next((child.attrib.get("message", "") for child in case if child.tag == "failure"), "")
            assert "PluginNotFoundError" not in found, f"{name} is not in the zoo: {found}"
            self._cases[name, case.attrib["name"]] = outcome
            self._ends.setdefault((name, outcome), set()).add(case.attrib["name"].partition("[")[0])

    def of(self, suite: str, outcome: str) -> set[str]:
        return self._ends.get((suite, outcome), set())

    def not_caught(self, broken: Mapping[str, str]) -> dict[str, str]:
        """Return the broken components that pass the law for their fault."""
        laws = {name: law.partition("[")[0] for name, law in broken.items()}
        return {name: law for name, law in laws.items() if law not in self.of(f"Test{name}", "failure")}

    def failed(self, example: str, case: str) -> bool:
        return self._cases.get((f"Test{example}", case)) == "failure"

    def cases(self, suite: str) -> set[str]:
        """Return the tests of a class that have parameters, with the parameters."""
        return {case for name, case in self._cases if name == suite and "[" in case}

    def fired(self, example: str, check: str) -> bool:
        """Return True if a test of an example was ended, or would have been, by a check."""
        return any(check in checks for (suite, _), checks in self._fired.items() if suite == f"Test{example}")


# What suites and the tests in them need, and what pytest imports to begin with. Not the suites themselves: their
# asserts are rewritten where they are imported.
COMMON = """
import importlib, sqlite3, sys
import hypothesis, hypothesis.strategies, jsonschema, pytest, yaml
import jackfield.agents, jackfield.cli.main, jackfield.models, jackfield.plugins, jackfield.processors
import jackfield.testing, jackfield.tools
import jackfield.retrieval, jackfield.retrieval, jackfield.retrieval
import jackfield_testkit.server
sys.path.insert(0, {folder!r})
import softly
sys.path.pop(0)
softly.load_suites()
from _pytest.config import default_plugins
for name in default_plugins:
    importlib.import_module(f"_pytest.{name}")
""".replace("{folder!r}", repr(str(Path(__file__).parent)))


# Of a class of which one test is asked for, pytest would make all: two hundred for each broken backend.
ONLY = """
from softly import pytest_pyfunc_call, pytest_runtest_makereport

def pytest_pycollect_makeitem(collector, name):
    wanted = WANTED.get(collector.name)
    return [] if wanted and name.startswith("test_") and name not in wanted else None
"""


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Runs programs as forks of a process that has imported pytest and the core."""
    with Forks(COMMON) as made:
        yield made


@pytest.fixture(scope="session")
def run_suites(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Callable[..., Outcomes]:
    """Runs tests of a module's text in a process of their own, with folders before everything else on the path."""
    tmp_path_factory.getbasetemp()  # made here: of several threads that ask for a folder first, one would fail

    def run(text: str, selected: Sequence[str], *paths: Path) -> Outcomes:
        folder = tmp_path_factory.mktemp("suites")
        (folder / "test_them.py").write_text(text, encoding="utf-8")
        wanted: dict[str, list[str]] = {}  # of those of which not all are
        for suite, _, test in (one.partition("[")[0].partition("::") for one in selected):
            if suite not in selected:
                wanted.setdefault(suite, []).append(test)
        (folder / "conftest.py").write_text(f"WANTED = {wanted}{ONLY}", encoding="utf-8")
        program = "import sys; sys.path.insert(0, ''); import pytest; sys.exit(pytest.console_main())"
        options = ["-q", "--tb=line", "-p", "no:cacheprovider", "--junitxml=report.xml", "--basetemp=made"]
        chosen = [f"test_them.py::{one}" for one in selected]
        # Without the other plugins of pytest that are installed here: the suites must do without.
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        done = forks.run(program, *options, *chosen, cwd=folder, env=environment, timeout_s=170)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return Outcomes(folder / "report.xml")

    return run
