"""Rows 0: the cost of a terminal command, for its help and for an answer, compared to `llm` and `clai`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import Row, processes_in_turns
from benchmarks.server import Servers

PROGRAMS = {"jackfield": "JACKFIELD_PROGRAM", "llm": "LLM_PROGRAM", "clai": "CLAI_PROGRAM"}
"""Environment variables that name the programs; peers without one are omitted."""


def commands(servers: Servers) -> list[Row]:
    """Measure the CPU time of whole processes in turns, with each program in its own environment."""
    programs = {name: os.environ[variable] for name, variable in PROGRAMS.items() if os.environ.get(variable)}
    programs.setdefault("jackfield", str(Path(sys.executable).with_name("jackfield")))
    answers = {
        "jackfield": ["run", "-m", "openai:short", "go"],
        "llm": ["-m", "short", "go"],
        "clai": ["-m", "openai-chat:short", "go"],
    }
    with tempfile.TemporaryDirectory() as home:
        env = environment(Path(home), servers)
        helps = processes_in_turns({name: [path, "--help"] for name, path in programs.items()}, rounds=5, env=env)
        asked = processes_in_turns({name: [path, *answers[name]] for name, path in programs.items()}, rounds=5, env=env)
    return [*rows("0 --help", helps), *rows("0 an answer in the terminal", asked)]


def environment(home: Path, servers: Servers) -> dict[str, str]:
    """Set up a home directory in which all three programs use the benchmark's server.

    Returns:
        The environment variables for the home directory and the server.
    """
    (home / "extra-openai-models.yaml").write_text(
        f"- model_id: short\n  model_name: short\n  api_base: {servers.chat}\n", encoding="utf-8"
    )
    return {"HOME": str(home), "LLM_USER_PATH": str(home), "OPENAI_BASE_URL": servers.chat, "OPENAI_API_KEY": "none"}


def rows(name: str, cpu: Mapping[str, float]) -> list[Row]:
    """Return a row for each peer."""
    ours = cpu["jackfield"]
    return [
        Row(name, f"{ours:.0f} ms", f"{peer} {theirs:.0f} ms", ours / theirs)
        for peer, theirs in cpu.items()
        if peer != "jackfield"
    ]
