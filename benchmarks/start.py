"""Rows 1 and 2: the cost of starting, up to a first answer, and of examining every plugin."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

from benchmarks.measure import Row, children_cpu_ms, in_turns, processes_in_turns
from benchmarks.server import Servers
from benchmarks.streams import OURS

_BUILD = "import jackfield; jackfield.FnCallAgent(function_list=['code_interpreter'])"
# Not ru_maxrss, because a child starts with its parent's.
_RSS = "; print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
_RAW_ANSWER = """
import sys
from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none")
answer = client.chat.completions.create(model="short", messages=[{"role": "user", "content": "go"}])
assert answer.choices[0].message.content == "ok"
"""
_ANSWER = """
import sys
from jackfield import create_agent

llm = {"model_type": sys.argv[2], "model": "short", "base_url": sys.argv[1], "api_key": "none"}
answer = create_agent("assistant", llm=llm).run_nonstream([{"role": "user", "content": "go"}])
assert answer[-1]["content"] == "ok"
"""
_TOOL = """
from jackfield.plugins import ToolSpec, hook

@hook.tools
def tools():
    return [ToolSpec(name="{module}", target="{module}:make", description="Does it.")]

def make():
    pass
"""


def import_cost(qwen_python: str | None) -> list[Row]:
    """Import the package and create an agent with a tool: CPU time of the process, minus bare Python."""
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "ours": [sys.executable, "-c", "import jackfield"],
        "agent": [sys.executable, "-c", _BUILD],
        "openai": [sys.executable, "-c", "import openai"],
    }
    if qwen_python:
        commands |= {"qwen bare": [qwen_python, "-c", "pass"], "qwen": [qwen_python, "-c", "import qwen_agent.agents"]}
    cpu = processes_in_turns(commands, rounds=9)
    openai = cpu["openai"] - cpu["bare"]
    ours, agent = cpu["ours"] - cpu["bare"], cpu["agent"] - cpu["bare"]
    peak = subprocess.run(
        [sys.executable, "-c", _BUILD + _RSS], capture_output=True, text=True, check=True
    ).stdout.strip()
    rss_mb = int(peak) / 1024
    rows = [
        Row(
            "1 import jackfield",
            f"{ours:.0f} ms",
            f"import openai {openai:.0f} ms",
            ours / openai,
            "40 ms of 414: 0.10",
        ),
        Row(
            "1 import, agent built",
            f"{agent:.0f} ms, {rss_mb:.0f} MB",
            f"import openai {openai:.0f} ms",
            agent / openai,
            "150 ms of 414: 0.36; 45 MB",
        ),
    ]
    if qwen_python:
        qwen = cpu["qwen"] - cpu["qwen bare"]
        rows.append(Row("1 import, agent built", f"{agent:.0f} ms", f"import qwen_agent {qwen:.0f} ms", agent / qwen))
    return rows


def first_answer(servers: Servers) -> list[Row]:
    """Run whole programs that import, create an agent and get a first answer: CPU time including Python's start."""
    commands = {
        "raw": [sys.executable, "-c", _RAW_ANSWER, servers.chat],
        "ours": [sys.executable, "-c", _ANSWER, servers.ours, servers.backend],
    }
    cpu = processes_in_turns(commands, rounds=11)
    ours, raw = cpu["ours"], cpu["raw"]
    return [Row("1 a program up to its first answer", f"{ours:.0f} ms", f"raw openai {raw:.0f} ms", ours / raw, "0.6")]


def serving_start(fastapi_python: str | None) -> list[Row]:
    """Run `jackfield serve` until `/readyz` answers, compared to `import fastapi, uvicorn`: CPU time of the process."""
    works: dict[str, Callable[[], object]] = {"ours": _serve_until_ready}
    if fastapi_python:
        command = [fastapi_python, "-c", "import fastapi, uvicorn"]
        works["fastapi"] = lambda: subprocess.run(command, check=True, timeout=120)
    cpu = in_turns(works, rounds=9, clock=children_cpu_ms)
    ours, fastapi = cpu["ours"], cpu.get("fastapi")
    peer = "" if fastapi is None else f"import fastapi, uvicorn {fastapi:.0f} ms"
    ratio = None if fastapi is None else ours / fastapi
    return [Row("1 jackfield serve until it is ready", f"{ours:.0f} ms", peer, ratio, "1.2")]


def _serve_until_ready() -> None:
    with subprocess.Popen(OURS.command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(words[-1] for line in process.stdout if (words := line.split()) and "http://" in words[-1])
        with urllib.request.urlopen(urljoin(address, "/readyz"), timeout=120) as reply:
            reply.read()
        process.kill()  # its shutdown is not measured


def listing_cost() -> list[Row]:
    """Run `jackfield plugins list` with 1000 plugins installed: CPU time minus bare Python."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1000):
            metadata = Path(folder) / f"acme_tool_{number}-1.0.dist-info"
            metadata.mkdir()
            (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-tool-{number}\nVersion: 1.0\n")
            (metadata / "entry_points.txt").write_text(f"[jackfield.v1]\ntool.t{number} = acme_not_there_{number}\n")
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "list": [sys.executable, "-m", "jackfield", "plugins", "list"],
            "openai": [sys.executable, "-c", "import openai"],
        }
        cpu = processes_in_turns(commands, rounds=9, env={"PYTHONPATH": folder})
    ours, openai = cpu["list"] - cpu["bare"], cpu["openai"] - cpu["bare"]
    peer = f"import openai {openai:.0f} ms"
    return [Row("2 plugins list, 1000 installed", f"{ours:.0f} ms", peer, ours / openai, "50 ms of 414: 0.12")]


def doctor_cost() -> list[Row]:
    """Measure what each of 36 plugins adds to `jackfield plugins doctor`, light and deep, compared to bare Python."""
    names = [f"acme-tool-{number}" for number in range(36)]
    doctor = [sys.executable, "-m", "jackfield", "plugins", "doctor"]
    commands = {"bare": [sys.executable, "-c", "pass"]}
    for how, options in (("light", []), ("deep", ["--deep"])):
        commands |= {f"{how} one": [*doctor, *options, names[0]], f"{how} all": [*doctor, *options, *names]}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            _install_tool(Path(folder), name)
        cpu = processes_in_turns(commands, rounds=5, env={"PYTHONPATH": folder})
    rows = []
    for how in ("light", "deep"):
        each = (cpu[f"{how} all"] - cpu[f"{how} one"]) / (len(names) - 1)
        peer = f"python -c pass {cpu['bare']:.0f} ms"
        rows.append(
            Row(f"2 plugins doctor, {how}, a plugin", f"{each:.0f} ms", peer, each / cpu["bare"], "40 ms of 12: 3.3")
        )
    return rows


def _install_tool(site: Path, distribution: str) -> None:
    module = distribution.replace("-", "_")
    metadata = site / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[jackfield.v1]\ntool.{module} = {module}\n")
    files = (f"{module}.py", f"{metadata.name}/METADATA", f"{metadata.name}/entry_points.txt")
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    (site / f"{module}.py").write_text(_TOOL.format(module=module))
