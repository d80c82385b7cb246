"""The page for people who come from Qwen-Agent: both of its columns run, against one server, and give what it shows.

A pair on the page is a block titled `qwen_agent`, one titled `jackfield`, and what they give: `text` blocks titled
`both print`, `qwen_agent prints` or `jackfield prints`, and `json` blocks titled `both send` and so on, a part of the
last request that reached the server (with `, in 2 requests`: of so many). A left block that cannot be run says why in
its title.

Each column is one process that runs all of its blocks. Qwen-Agent's has an environment of its own below `.cache/`, made
once from the versions in `qwen_agent_versions.txt`.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import jackfield
import jackfield_testkit
from jackfield.agents import Agent, AgentOptions
from jackfield.config import GenerateConfig
from jackfield.plugins import default_host, known_components
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_documents import RAGConfig
from jackfield_testkit.replies import Reply, ToolCall, error, reasoning, text, tool_calls
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/guides/coming-from-qwen-agent.md"
VERSIONS = ROOT / "tests/qwen_agent_versions.txt"
ADDRESS = "http://localhost:8000/v1"
"""What blocks have as the address of their server; the real one takes its place."""

SIDES = ("qwen_agent", "jackfield")
NOT_RUN = {
    "Code": "it needs Docker",
    "MCP": "it starts a server from the network",
    "A web page": "it is a page in a browser",
}
"""The only left blocks that are not run, by their heading."""

FENCE = re.compile(r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<body>.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^#+ (.*)$", re.M)

# Runs blocks one after the other, each in a module of its own; gives what each printed, or how it failed.
RUNNER = """
import contextlib, io, json, sys, traceback, types

def stay_here(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        if not str(arguments[1][0]).startswith(("127.", "::1")):
            raise RuntimeError(f"a block wants to leave the machine: {arguments[1]}")

sys.addaudithook(stay_here)
results = {}
for name, code in json.load(sys.stdin).items():
    module = types.ModuleType(f"block_{len(results)}")
    sys.modules[module.__name__] = module
    said, failure = io.StringIO(), ""
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(code, name, "exec"), vars(module))
        except BaseException:
            failure = traceback.format_exc()
    results[name] = {"printed": said.getvalue(), "failure": failure}
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(results, file)
"""


@dataclass
class Pair:
    """Two blocks that do the same, and what the page says they give."""

    heading: str
    line: int
    code: dict[str, str] = field(default_factory=dict)
    not_run: str = ""
    prints: dict[str, str] = field(default_factory=dict)
    sends: dict[str, Any] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return re.sub(r"\W+", "-", self.heading).strip("-").lower()


def pairs_of(page: str) -> list[Pair]:
    """The pairs of the page, in its order.

    Raises:
        ValueError: A block is no part of a pair, or a heading has two pairs.
    """
    pairs: list[Pair] = []
    for found in FENCE.finditer(page):
        language, title, body = found["language"], found["title"] or "", found["body"]
        line = page.count("\n", 0, found.start("body"))
        side, _, what = title.replace("both", "qwen_agent+jackfield").partition(" ")
        sides = side.rstrip(",").split("+")
        if language == "python" and side.startswith("qwen_agent"):
            heading = HEADING.findall(page[: found.start()])[-1]
            pairs.append(Pair(heading, line))
            pairs[-1].not_run = what.removeprefix("not run: ")
            pairs[-1].code["qwen_agent"] = body
        elif language == "python" and title == "jackfield" and pairs and "jackfield" not in pairs[-1].code:
            pairs[-1].code["jackfield"] = body
        elif language == "text" and what.startswith("print"):
            pairs[-1].prints |= dict.fromkeys(sides, body)
        elif language == "json" and what.startswith("send"):
            pairs[-1].sends |= dict.fromkeys(sides, json.loads(body))
            if number := re.search(r"in (\d+) request", what):
                pairs[-1].requests |= dict.fromkeys(sides, int(number[1]))
        elif language != "text" or title:
            raise ValueError(f"{PAGE.name}:{line}: the block {title!r} is no part of a pair")
    names = [pair.heading for pair in pairs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{PAGE.name}: two pairs have the heading {twice}")
    return pairs


TEXT = PAGE.read_text(encoding="utf-8")
PAIRS = pairs_of(TEXT)


# --- the model that both columns ask ---


def answer_to(request: RecordedRequest, earlier: int) -> Reply:
    """A model that is as good as its name says.

    It calls the first tool that it is offered, with 2 for each number and "Bonn" for each text, and then says what the
    tool gave. `twice-model` calls it twice at once, `endless-model` always again, `thinking-model` thinks before it
    answers, `busy-model` first says that it is busy, and `strict-model` refuses everything.
    """
    messages, tools = request.json["messages"], offered_tools(request.json)
    result = result_in(messages[-1])
    match request.model:
        case "busy-model" if not earlier:
            return error(503, "busy", headers={"x-should-retry": "false"})
        case "strict-model":
            return error(400, "temperature is too high")
        case "thinking-model":
            return reasoning("Let me see.", then="Forty-two.")
        case "endless-model":
            result = ""
    if tools and not result:
        calls = [call_of(tools[0], number) for number in range(2 if request.model == "twice-model" else 1)]
        return written(calls) if "tools" not in request.json else tool_calls(calls)
    return text(f"The tool gave {result}." if result else "A recorded answer.")


def offered_tools(asked: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tools of a request, also those in the text of its system message."""
    if "tools" in asked:
        return [tool["function"] for tool in asked["tools"]]
    written_tools = re.findall(r"<tools>\n(.*?)\n</tools>", str(asked["messages"][0]["content"]), re.S)
    return [json.loads(line)["function"] for block in written_tools for line in block.splitlines()]


def result_in(message: Mapping[str, Any]) -> str:
    """The result of a tool, if the message is one: its last line."""
    content = str(message["content"])
    if message["role"] != "tool" and "<tool_response>" not in content:
        return ""
    said = re.findall(r"<tool_response>\n?(.*?)\n?</tool_response>", content, re.S) or [content]
    return " and ".join(one.strip().rpartition("\n")[2] for one in said)


def call_of(function: Mapping[str, Any], number: int) -> ToolCall:
    """A call of a function that is described by a JSON Schema, or by a list of parameters."""
    schema = function["parameters"]
    if isinstance(schema, list):
        types = {one["name"]: one["type"] for one in schema}
    else:
        types = {name: one.get("type", "string") for name, one in schema["properties"].items()}
    values = {name: 2 if kind in ("integer", "number") else "Bonn" for name, kind in types.items()}
    return ToolCall(function["name"], json.dumps(values), id=f"call_{number}")


def written(calls: list[ToolCall]) -> Reply:
    """Calls as the text that Qwen's models write."""
    lines = [f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>' for call in calls]
    return text("\n".join(lines))


def run_column(side: str, python: Path, blocks: Mapping[str, str], server: FakeOpenAI, folder: Path) -> dict[str, Any]:
    """Run the blocks of one side in one process; what each gave, with the requests that it sent."""
    folder = folder / side
    folder.mkdir()
    (folder / "guide.md").write_text("# Panels\n\nA panel has 48 sockets.\n", encoding="utf-8")
    # Each block has an address of its own, so that its requests are known by their path.
    addresses = {name: f"{server.origin}/{side}/{number}" for number, name in enumerate(blocks)}
    code = {name: block.replace(ADDRESS, f"{addresses[name]}/v1") for name, block in blocks.items()}
    results = folder / "results.json"
    done = subprocess.run(
        [python, "-c", RUNNER, results],
        input=json.dumps(code),
        cwd=folder,
        env=environment_of(folder),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert results.exists(), f"the column {side} did not end\n{done.stdout}\n{done.stderr}"
    ran: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    for name, address in addresses.items():
        path = address.removeprefix(server.origin) + "/"
        ran[name]["requests"] = [request.json for request in server.requests if request.path.startswith(path)]
    return ran


def environment_of(home: Path) -> dict[str, str]:
    """Nothing of the user's: no keys, no settings."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "LANG": "C.UTF-8"}


def qwen_agent_python(uv: str) -> Path:
    """The interpreter of an environment with Qwen-Agent, made at the first call ever.

    Raises:
        CannotInstallError: It cannot be installed here.
    """
    wanted = VERSIONS.read_text(encoding="utf-8")
    mark = hashlib.sha256(f"{sys.version}\n{wanted}".encode()).hexdigest()
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    folder = cache / "qwen-agent"
    with (cache / "qwen-agent.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists() or (folder / "complete").read_text() != mark:
            for command in (
                ["venv", "--quiet", "--clear", "--python", sys.executable, folder],
                ["pip", "install", "--quiet", "--no-deps", "--python", folder / "bin/python", "-r", VERSIONS],
            ):
                done = subprocess.run(
                    [uv, *map(str, command)], capture_output=True, text=True, timeout=600, check=False
                )
                if done.returncode:
                    raise CannotInstallError(f"Qwen-Agent cannot be installed here: {done.stderr.strip()[-500:]}")
            (folder / "complete").write_text(mark)
    return folder / "bin/python"


class CannotInstallError(Exception):
    """Qwen-Agent cannot be installed on this machine."""


# What only Qwen-Agent itself can tell: all that a page about it has to name.
INVENTORY = r"""
import inspect, json, re
from pathlib import Path
import qwen_agent
from qwen_agent import agents
from qwen_agent.llm import LLM_REGISTRY
from qwen_agent.memory import Memory
from qwen_agent.tools import TOOL_REGISTRY

root = Path(qwen_agent.__file__).parent
sources = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in root.rglob("*.py")}
models = "\n".join(text for name, text in sources.items() if name.startswith("llm/"))
read = re.compile(r"(?:cfg|config|params)\.(?:get|pop)\('([a-z_]+)'|'([a-z_]+)' in (?:generate_)?(?:cfg|config)\b")
set_in_the_environment = re.compile(r"(?:getenv|environ\.get)\(\s*'([A-Z0-9_]+)'")
names = [
    *agents.__all__,
    *LLM_REGISTRY,
    *TOOL_REGISTRY,
    *(key for keys in read.findall(models) for key in keys if key),
    *inspect.signature(agents.Assistant).parameters,
    *re.findall(r"cfg\.get\('([a-z_]+)'", sources["memory/memory.py"]),
    *set_in_the_environment.findall("\n".join(sources.values())),
]
print(json.dumps(sorted(set(names))))
"""
INVENTORY_NAME = "inventory"

IMPORTS = [
    (left, right if right.startswith("from ") else "")
    for left, right in re.findall(r"^\| `(from [^`]*)` \| `?([^`|\n]*)", TEXT, re.M)
]
"""The rows of the table of names: what is imported there, and here; '' where no import stands for it."""


@pytest.fixture(scope="session")
def columns(
    once: Callable[[str, Callable[[], Any]], Any], uv: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What the blocks of both columns gave, by side and heading; `missing` says why a side is not there."""

    def run_both() -> dict[str, dict[str, Any]]:
        folder = tmp_path_factory.mktemp("columns")
        given: dict[str, dict[str, Any]] = {}
        with served() as server:
            given["jackfield"] = run_column("jackfield", Path(sys.executable), blocks_of("jackfield"), server, folder)
            try:
                python = qwen_agent_python(uv)
            except CannotInstallError as error:
                given["missing"] = {"qwen_agent": str(error)}
                return given
            given["qwen_agent"] = kept_or_run(lambda blocks: run_column("qwen_agent", python, blocks, server, folder))
        return given

    result: dict[str, dict[str, Any]] = once("coming-from-qwen", run_both)
    return result


def kept_or_run(run: Callable[[Mapping[str, str]], dict[str, Any]]) -> dict[str, Any]:
    """What Qwen-Agent's side gave, kept until what it is asked or answered changes, but at night.

    Its imports and its waits take most of the time of this module. What is not as the page says is not kept.
    """
    blocks = {**blocks_of("qwen_agent"), INVENTORY_NAME: INVENTORY}
    answers = [Path(__file__), VERSIONS, *sorted(Path(jackfield_testkit.__file__).parent.glob("*.py"))]
    given = [sys.version, json.dumps(blocks), *(file.read_text(encoding="utf-8") for file in answers)]
    mark = hashlib.sha256("\n".join(given).encode()).hexdigest()
    file = ROOT / ".cache/qwen-agent-gave.json"
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if kept.get("mark") == mark and os.environ.get("HYPOTHESIS_PROFILE") != "nightly":
        return dict(kept["gave"])
    gave = run(blocks)
    differ = [differences(pair, "qwen_agent", gave[pair.heading]) for pair in PAIRS if not pair.not_run]
    if not any(differ) and not any(one["failure"] for one in gave.values()):
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps({"mark": mark, "gave": gave}), encoding="utf-8")
        part.replace(file)
    return gave


def blocks_of(side: str) -> dict[str, str]:
    """What is run of one side, by name: the blocks of the pairs, and the rows of imports."""
    blocks = {pair.heading: pair.code[side] for pair in PAIRS if side == "jackfield" or not pair.not_run}
    return {**blocks, **{line: line for row in IMPORTS if (line := row[SIDES.index(side)])}}


@contextmanager
def served() -> Iterator[FakeOpenAI]:
    """A server with the model; what it knows of a conversation it finds in the requests before."""
    with FakeOpenAI() as server:
        server.respond(lambda request: answer_to(request, sum(one.path == request.path for one in server.requests) - 1))
        yield server


def ran(columns: Mapping[str, Mapping[str, Any]], side: str, name: str) -> Mapping[str, Any]:
    """What one block gave; skips where its side cannot be there."""
    if side not in columns:
        pytest.skip(columns["missing"][side])
    gave: Mapping[str, Any] = columns[side][name]
    assert not gave["failure"], f"{side}, {name}:\n{gave['failure']}"
    return gave


def differences(pair: Pair, side: str, gave: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """In what a block gave something else than the page says: what it gave, and what the page says."""
    requests, sends = gave["requests"], pair.sends.get(side, {})
    sent = requests[-1] if requests else {}
    both = {
        "failure": (gave["failure"], ""),
        "printed": (gave["printed"], pair.prints.get(side, "")),
        "sent": ({key: sent.get(key) for key in sends}, sends),
        "requests": (len(requests), pair.requests.get(side, len(requests))),
    }
    return {what: (given, shown) for what, (given, shown) in both.items() if given != shown}


# --- the pairs ---


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("pair", "side"),
    [(pair, side) for pair in PAIRS for side in SIDES if side == "jackfield" or not pair.not_run],
    ids=str,
)
def test_a_block_gives_what_the_page_says(columns: dict[str, dict[str, Any]], pair: Pair, side: str) -> None:
    assert not differences(pair, side, ran(columns, side, pair.heading)), f"{PAGE.name}:{pair.line}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", IMPORTS, ids=lambda row: row[0])
def test_a_row_of_imports_is_true(columns: dict[str, dict[str, Any]], row: tuple[str, str]) -> None:
    if row[1]:
        ran(columns, "jackfield", row[1])
    ran(columns, "qwen_agent", row[0])


def test_every_pair_has_both_sides_and_shows_what_they_give() -> None:
    assert len(PAIRS) >= 20
    for pair in PAIRS:
        assert set(pair.code) == set(SIDES), pair.heading
        shown = set(pair.prints) | set(pair.sends)
        assert shown >= set(SIDES) - ({"qwen_agent"} if pair.not_run else set()), pair.heading


def test_no_block_more_is_left_out_than_has_to_be() -> None:
    assert {pair.heading: pair.not_run for pair in PAIRS if pair.not_run} == NOT_RUN


# --- the tables ---


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_page_names_all_that_qwen_agent_has(columns: dict[str, dict[str, Any]]) -> None:
    names = json.loads(ran(columns, "qwen_agent", INVENTORY_NAME)["printed"])
    assert len(names) > 80
    assert not [name for name in names if not re.search(rf"\b{name}\b", TEXT)]


def rows() -> list[list[str]]:
    """The cells of all rows of the page's tables."""
    return [re.split(r" *\| *", line.strip("| \n")) for line in TEXT.splitlines() if line.startswith("| ")]


def words_in_code(cell: str) -> set[str]:
    """The identifiers that stand alone in backquotes, `"name"` included."""
    return set(re.findall(r"`\"?(\w+)\"?`", cell))


def test_what_is_not_there_yet_is_not_there() -> None:
    kinds = ("agent.", "tool.", "searcher.", "llm.")
    there = {name.partition(".")[2] for name in known_components() if name.startswith(kinds)} | set(jackfield.__all__)
    shapes = {bare(name) for name in there}
    absent = {name for cells in rows() if cells[1].startswith("not available yet") for name in words_in_code(cells[0])}
    assert absent, "the page says of nothing that it is missing"
    assert not {name for name in absent if bare(name) in shapes}, "the page says that they are not available yet"
    assert not {name for name in absent if name.isupper() and name in our_sources()}


@cache
def our_sources() -> str:
    return "".join(file.read_text(encoding="utf-8") for file in ROOT.glob("plugins/*/*/src/**/*.py"))


def bare(name: str) -> str:
    """A name without what differs between a class and a plugin: `ReActChat` is `react`, as `react_chat` is."""
    return re.sub(r"(chat|agent)$", "", name.replace("_", "").lower())


def test_an_option_that_is_the_same_exists() -> None:
    same = {name for cells in rows() if cells[1].startswith("the same") for name in words_in_code(cells[0])}
    options = {*GenerateConfig.model_fields, *RAGConfig.model_fields, *CodeInterpreterConfig.model_fields}
    options |= {*AgentOptions.__annotations__, *inspect.signature(Agent).parameters}
    for component in known_components():
        kind, _, name = component.partition(".")
        options.add(name)
        if kind == "llm":
            options |= set(default_host().load("llm", name).config_class.model_fields)
    assert len(same) > 30
    assert not {name for name in same if not (name in our_sources() if name.isupper() else name in options)}
