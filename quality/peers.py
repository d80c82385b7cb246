"""Peers that rank the same passages: bm25s, LlamaIndex and Haystack, and Qwen-Agent if `QWEN_PYTHON` is set.

The first three share an environment below `.cache/`, created on first use.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quality.weights import LIMIT_S, ROOT, CannotInstallError, find_uv

REQUIREMENTS = Path(__file__).with_name("peers.txt")
FOLDER = ROOT / ".cache" / "peers"

Job = dict[str, Any]
"""`passages` and `queries`, each with `text` and `vector` (and `id` for passages), and `depth`."""
Rankings = dict[str, list[list[list[str]]]]
"""For each peer and job, the ids found for each query, best first."""


def rank_with_peers(jobs: Sequence[Job]) -> Rankings:
    """Return the rankings of all peers.

    Raises:
        CannotInstallError: Their environment cannot be created here.
    """
    rankings: Rankings = _run(_python(), "peer_ranking.py", jobs)
    if qwen := os.environ.get("QWEN_PYTHON"):
        of_qwen: Rankings = _run(qwen, "peer_qwen.py", [_for_qwen(job) for job in jobs])
        rankings |= {f"Qwen-Agent {name}": ranked for name, ranked in of_qwen.items()}
    return rankings


def _for_qwen(job: Job) -> dict[str, Any]:
    documents: dict[str, list[tuple[str, str]]] = {}
    for passage in job["passages"]:
        documents.setdefault(passage["document"], []).append((passage["id"], passage["text"]))
    return {"documents": documents, "questions": [one["text"] for one in job["queries"]], "depth": job["depth"]}


def _run(python: str | Path, program: str, value: object) -> Any:
    done = subprocess.run(
        [python, Path(__file__).with_name(program)],
        input=json.dumps(value),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{program} failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _python() -> Path:
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    mark, python = FOLDER / "complete", FOLDER / "bin" / "python"
    FOLDER.parent.mkdir(exist_ok=True)
    with FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            for command in (
                ["venv", "--quiet", "--clear", "--python", sys.executable, FOLDER],
                ["pip", "install", "--quiet", "--python", python, "-r", REQUIREMENTS],
            ):
                done = subprocess.run(
                    [find_uv(), *map(str, command)], capture_output=True, text=True, timeout=LIMIT_S, check=False
                )
                if done.returncode:
                    raise CannotInstallError(f"the peers cannot be installed here: {done.stderr.strip()[-500:]}")
            mark.write_text(wanted, encoding="utf-8")
    return python
