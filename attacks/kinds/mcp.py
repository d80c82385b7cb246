"""MCP servers that fail at any step of the protocol, and malformed lists of tools."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from attacks.kind import Attempt, Kind, law
from jackfield import FnCallAgent
from jackfield.errors import JackfieldError
from jackfield.testing import ScriptedModel, answer, calls

SERVER = Path(__file__).resolve().parents[2] / "plugins" / "tools" / "mcp" / "tests" / "stepping_server.py"
STEPS = ("start", "discover", "initialize", "initialized", "list", "list-2", "resources", "resources-2", "prompts")
STEPS += ("call", "notify", "sample", "elicit", "result", "shutdown")
ACTS = ("die", "close", "stall", "garbage", "wrong", "half")
LIMIT_S = 0.5  # for each of connecting, listing, calling and closing
ENDS_S = 15.0  # includes the time the SDK takes to give up a write, and a busy machine
SOUND = {"name": "sound", "inputSchema": {"type": "object", "properties": {}}}

# A server that answers a listing with a file's content, and a call with "stepped".
LISTING = """
import json, sys
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = json.dumps(INFO).encode()
    if message["method"] == "tools/list":
        result = open(sys.argv[1], "rb").read()
    elif message["method"] == "tools/call":
        result = b'{"content": [{"type": "text", "text": "stepped"}]}'
    sys.stdout.buffer.write(b'{"jsonrpc": "2.0", "id": %d, "result": %s}\\n' % (message["id"], result))
    sys.stdout.buffer.flush()
"""


def _run(entry: dict[str, Any], folder: Path, tool: str) -> str:
    """Return the result of the agent's call, or the error that ended the run."""
    settings = {"name": "mcp", "mcpServers": {"s": entry}, "cache_folder": str(folder / "kept")}
    model = ScriptedModel([calls((f"s-{tool}", {}), ("s-list_resources", {})), answer("done")])
    try:
        result = FnCallAgent([settings], model).ask("go")
    except JackfieldError as error:
        return str(error)
    return str(next(message.content for message in result.messages if message.role == "function"))


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _fail(step: str, act: str, is_http: bool) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = [sys.executable, "-E", "-S", str(SERVER), step, act, str(folder)]
        entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
        if is_http:
            server = stack.enter_context(subprocess.Popen([*command, "http"]))
            stack.callback(server.kill)
            while not (folder / "port").exists():
                time.sleep(0.01)
            entry = {"url": f"http://127.0.0.1:{(folder / 'port').read_text()}/mcp", "type": "http"}
        limits = dict.fromkeys(("connect_timeout_s", "list_timeout_s", "call_timeout_s", "close_timeout_s"), LIMIT_S)
        began = time.monotonic()
        said = _run({**entry, **limits, "sampling": ScriptedModel([answer("hello")])}, folder, "step")
        took = time.monotonic() - began
        law(took < ENDS_S, f"the run took {took:.1f} s")
        law("stepped" in said or "MCP server 's'" in said, f"the server is not named: {said[:200]}")
        law("rejected" not in said, f"a call without an answer is said to be rejected: {said[:200]}")
        if not is_http:
            pids = [int(file.name) for file in folder.glob("[0-9]*")]
            ends = time.monotonic() + LIMIT_S * 4
            while any(map(_is_running, pids)) and time.monotonic() < ends:
                time.sleep(0.02)
            law(not any(map(_is_running, pids)), "the server is still running")


def _junk(dice: random.Random, levels: int = 0) -> Any:
    """Return a random JSON value, often with the keys of a tool."""
    match dice.randrange(9 if levels < 4 else 6):
        case 0:
            return dice.choice([None, True, -1, 1e308, 10**30, ""])
        case 1:
            return "".join(dice.choices('a"\\{[]}\u2028\0\U0001f600', k=dice.randrange(20)))
        case 2:
            return "x" * dice.choice([100, 100_000])
        case 3 | 4 | 5:
            value: Any = {}
            for _ in range(dice.choice([1, 50, 300])):
                value = dice.choice([[value], {"properties": value}, {"anyOf": [value]}])
            return value
        case 6:
            return [_junk(dice, levels + 1) for _ in range(dice.randrange(4))]
        case _:
            keys = (
                "name",
                "inputSchema",
                "description",
                "annotations",
                "outputSchema",
                "execution",
                "type",
                "required",
            )
            return {key: _junk(dice, levels + 1) for key in dice.sample(keys, dice.randrange(6))}


def _list(seed: int) -> None:
    dice = random.Random(seed)
    entries = [_junk(dice) for _ in range(dice.randrange(1, 6))]
    entries = [dice.choice([entry, {**SOUND, "name": "x", dice.choice(list(SOUND)): entry}]) for entry in entries]
    entries.insert(dice.randrange(len(entries) + 1), SOUND)
    with tempfile.TemporaryDirectory() as name:
        content = json.dumps({"tools": entries}).encode()
        if is_damaged := dice.random() < 0.3:
            at = dice.randrange(len(content))
            content = (content[:at] + dice.randbytes(3) + content[at + 1 :]).replace(b"\n", b" ")
        listed = Path(name, "tools")
        listed.write_bytes(content)
        server = {"command": sys.executable, "args": ["-E", "-S", "-c", LISTING, str(listed)], "list_timeout_s": 5}
        said = _run(server, Path(name), "sound")
        if not is_damaged:
            law(said == "stepped", f"malformed tools cost the sound one: {said[:200]}")
        elif said != "stepped":
            law("MCP server 's'" in said or "does not exist" in said, f"the server is not named: {said[:200]}")


def attempts(dice: random.Random) -> Iterator[Attempt]:
    """Yield every combination of step and failure once, alternating with random tool lists, then only such lists."""
    failures = [(step, act, is_http) for step in STEPS for act in ACTS for is_http in (False, True)]
    dice.shuffle(failures)
    for step, act, is_http in failures:
        transport = "HTTP" if is_http else "stdio"
        yield Attempt(f"{act} at {step} over {transport}", partial(_fail, step, act, is_http), timeout_s=40)
        yield Attempt("a list of malformed tools", partial(_list, dice.getrandbits(32)))
    while True:
        yield Attempt("a list of malformed tools", partial(_list, dice.getrandbits(32)))


KIND = Kind(
    "If a server fails or lies, the call ends in an answer or a clear error within its limits, and no process is left.",
    attempts,
    quick=8,
)
