"""Streams from an agent behind each of its faces, compared to agno, pydantic-ai and a FastAPI endpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.streams import OURS, App, measure

STREAMS = 100
ROUNDS = 3
_PROGRAM = str(Path(__file__).with_name("peer_served.py"))
_QUESTION = {"role": "user", "content": "Tide?"}
_WEB = {"trigger": "submit-message", "id": "1", "messages": [{"id": "m", "role": "user", "parts": [
    {"type": "text", "text": "Tide?"}]}]}  # fmt: skip
_AG_UI = {"threadId": "t", "runId": "r", "state": {}, "messages": [{"id": "m", **_QUESTION}], "tools": [],
    "context": [], "forwardedProps": {}}  # fmt: skip


def peers() -> dict[str, App]:
    """Return the peers whose Python interpreters are named in the environment."""
    apps: dict[str, App] = {}
    if python := os.environ.get("FASTAPI_PYTHON"):
        apps["50 lines of FastAPI"] = App(command=(python, _PROGRAM, "fastapi"))
    if python := os.environ.get("AGNO_PYTHON"):
        apps["AgentOS of agno"] = App(
            command=(python, _PROGRAM, "agno"),
            path="/agents/agent/runs",
            body=b"message=Tide%3F&stream=true",
            media_type="application/x-www-form-urlencoded",
        )
    if python := os.environ.get("PYDANTIC_AI_PYTHON"):
        apps["pydantic-ai to_web"] = App(
            command=(python, _PROGRAM, "to_web"), path="/api/chat", body=json.dumps(_WEB).encode()
        )
        apps["pydantic-ai AG-UI"] = App(command=(python, _PROGRAM, "ag_ui"), path="/", body=json.dumps(_AG_UI).encode())
    return apps


def beside_peers() -> list[Row]:
    """Measure the time to the first text of concurrent streams, and the server's CPU time per stream."""
    apps = {"ours": OURS, **peers()}
    measured = measure(apps, count=STREAMS, spread_s=0.0, rounds=ROUNDS)
    rows: list[Row] = []
    for title, figures, unit in (
        (f"{STREAMS} streams at once: first text, p95", measured.first_text_ms, "ms"),
        ("CPU of the server for a stream", measured.cpu_us, "µs"),
    ):
        ours = figures["ours"]
        rows += [
            Row(title, f"{ours:.0f} {unit}", f"{name} {value:.0f} {unit}", ours / value)
            for name, value in figures.items()
            if name != "ours"
        ]
    return rows
