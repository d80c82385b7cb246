"""Measure the minimal install that runs a tool-calling agent, and write the table to docs/install-size.md.

python -m benchmarks.install_size            write the table; QWEN_PYTHON names a Python with qwen-agent for its column
python -m benchmarks.install_size --print    only print the figures, as JSON

Everything is measured in a new environment with the wheels of `jackfield-openai` and the packages of ours that it
needs, against a server on 127.0.0.1. Distributions, megabytes and modules are counted; CPU time is the median of
processes run in turns.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import packaging

from jackfield_testkit.replies import text, tool_call
from jackfield_testkit.server import FakeOpenAI
from scripts.release import build_wheel, needs, sources

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/install-size.md"
ROUNDS = 7
_PACKAGING = Path(packaging.__file__).parent.parent

OURS = """
import sys
from jackfield import FnCallAgent, tool

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

agent = FnCallAgent([add], {"model_type": "openai", "model": "m", "base_url": sys.argv[1], "api_key": "none"})
said = agent.run_nonstream([{"role": "user", "content": "go"}])[-1]["content"]
"""
QWEN = """
import sys
from qwen_agent.agents import FnCallAgent
from qwen_agent.tools.base import BaseTool

class Add(BaseTool):
    name, description = "add", "Add two numbers."
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                  "required": ["a", "b"]}
    def call(self, params, **_):
        given = self._verify_json_format_args(params)
        return str(given["a"] + given["b"])

llm = {"model": "m", "model_type": "oai", "model_server": sys.argv[1], "api_key": "none",
       "generate_cfg": {"use_raw_api": True}}
for responses in FnCallAgent(function_list=[Add()], llm=llm).run([{"role": "user", "content": "go"}]):
    pass
said = responses[-1]["content"]
"""
REPORT = """
import json
assert said == "It is 3.", said
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(json.dumps({"modules": len(sys.modules), "rss_mb": int(status["VmHWM"].split()[0]) / 1024}))
"""
# Files listed in a distribution's RECORD; packages that the environment came with are not counted.
COUNT = """
import json, sys
from importlib import metadata
sys.path.append(sys.argv[2])  # the environment need not have `packaging`
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
found, open_ = {}, [(sys.argv[1], "")]
while open_:
    name, extra = open_.pop()
    distribution = metadata.distribution(name)
    key = canonicalize_name(name)
    if key in found:
        continue
    # Bytecode is written by installers or not, by their settings.
    found[key] = sum(
        file.locate().stat().st_size
        for file in distribution.files or () if file.suffix != ".pyc" and file.locate().is_file()
    )
    for requirement in map(Requirement, distribution.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            open_.append((requirement.name, ""))
print(json.dumps({"distributions": len(found), "mb": sum(found.values()) / 1e6}))
"""


def measure(python: Path | str, script: str, distribution: str, server: FakeOpenAI, *, rounds: int) -> dict[str, float]:
    """Return one environment's figures: distributions, mb, modules, rss_mb, and cpu_ms (a run minus bare Python)."""
    figures: dict[str, float] = json.loads(_run([python, "-I", "-c", COUNT, distribution, _PACKAGING]))
    runs, bare = [], []
    for _ in range(rounds):
        server.reply(tool_call("add", {"a": 1, "b": 2}), text("It is 3."))
        cpu, said = _cpu_ms([python, "-I", "-c", script + REPORT, server.url])
        runs.append(cpu)
        figures |= json.loads(said.splitlines()[-1])
        bare.append(_cpu_ms([python, "-I", "-c", "pass"])[0])
    figures["cpu_ms"] = statistics.median(runs) - statistics.median(bare)
    return figures


def minimal_environment(folder: Path) -> Path:
    """Create an environment with the wheels of the core and one backend, and return its interpreter."""
    wheels = folder / "wheels"
    ours = sources(ROOT)
    for name in needs(ours["jackfield-openai"], ours):
        build_wheel(ours[name], wheels)
    _run(["uv", "venv", "--quiet", "--python", sys.executable, folder / "venv"])
    python = folder / "venv/bin/python"
    constraints = ("--constraints", ROOT / "constraints.txt")
    _run(["uv", "pip", "install", "--quiet", "--python", python, *constraints, *sorted(wheels.glob("*.whl"))])
    return python


def table(ours: Mapping[str, float], qwen: Mapping[str, float] | None) -> str:
    """Return the text of the document."""
    lines = [
        "# What the minimal install costs",
        "",
        "This table shows what the smallest useful installation costs in packages, disk space, memory and CPU.",
        "",
        '`pip install "jackfield[openai]"` installs the core and one backend, without the commands that manage an',
        "installation (those are in the `cli` extra). In each measured run, an agent calls one tool once, against a",
        "server on the same machine. `make size` writes the table. CPU is the median CPU time of a whole process over",
        "several runs, minus the CPU time of bare Python. Compare the columns rather than the absolute values.",
        "",
        "| | Jackfield |" + (" Qwen-Agent | ratio |" if qwen else ""),
        "|---|---|" + ("---|---|" if qwen else ""),
    ]
    rows = (
        ("distributions installed", "distributions", "{:.0f}"),
        ("size of their files, MB", "mb", "{:.1f}"),
        ("modules loaded after the run", "modules", "{:.0f}"),
        ("peak memory of the run, MB", "rss_mb", "{:.0f}"),
        ("CPU of the run, ms", "cpu_ms", "{:.0f}"),
    )
    for title, key, form in rows:
        beside = f" {form.format(qwen[key])} | {ours[key] / qwen[key]:.2f} |" if qwen else ""
        lines.append(f"| {title} | {form.format(ours[key])} |{beside}")
    return "\n".join(lines) + "\n"


def _cpu_ms(command: Sequence[str | Path]) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = _run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000, said


def _run(command: Sequence[str | Path]) -> str:
    first = Path(command[0])
    beside = Path(sys.executable).parent / first
    line = [str(beside if beside.exists() else first), *map(str, command[1:])]
    with tempfile.TemporaryDirectory() as home:
        env = {
            **os.environ,
            "HOME": home,
            "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache/uv")),
        }
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=home, env=env)
    if done.returncode:
        raise SystemExit(f"{line[0]} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def main(arguments: Sequence[str]) -> None:
    """Measure, then write the table or print the figures."""
    qwen_python = os.environ.get("QWEN_PYTHON")
    only_print = "--print" in arguments or not qwen_python
    rounds = 1 if only_print else ROUNDS
    with tempfile.TemporaryDirectory() as folder, FakeOpenAI() as server:
        ours = measure(minimal_environment(Path(folder)), OURS, "jackfield-openai", server, rounds=rounds)
        qwen = measure(qwen_python, QWEN, "qwen-agent", server, rounds=rounds) if qwen_python else None
    if only_print:
        print(json.dumps({"jackfield": ours, "qwen-agent": qwen}, indent=2))
    else:
        TABLE.write_text(table(ours, qwen), encoding="utf-8")
        print(TABLE.read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
