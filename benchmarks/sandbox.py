"""Row `sandbox`: kernels and programs with and without a sandbox, and optionally many kernels at once."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from benchmarks.measure import Row, in_turns, wall_ms
from jackfield.plugins import default_host
from jackfield.sandboxes import Limits, Program, ProgramSandbox, choose_sandbox
from jackfield_code_interpreter.tool import CodeInterpreter

ROUNDS = 7
CODE = {"code": "print(6 * 7)"}


def sandboxes() -> list[Row]:
    """Measure a cold start, a warm start, a call and a program, and the kernels in `SANDBOX_KERNELS` at once if set."""
    rows = [*asyncio.run(_kernels()), *_programs()]
    if count := int(os.environ.get("SANDBOX_KERNELS", "0")):
        rows.append(asyncio.run(_at_once(count)))
    return rows


async def _kernels() -> list[Row]:
    plain, caged = CodeInterpreter(sandbox="none"), CodeInterpreter(sandbox="auto")
    await caged.call(CODE)  # the sandbox is chosen and tried only once
    tools = {"plain": plain, "caged": caged}
    cold = await _medians(tools, rounds=ROUNDS, cold=True)
    call = await _medians(tools, rounds=50, cold=False)
    warm = []
    ahead = CodeInterpreter(sandbox="auto", warm_kernels=1)
    for _ in range(ROUNDS):
        await ahead.warm_up()
        warm.append(await _first(ahead, cold=False))
        await ahead.aclose()
    for tool in (plain, caged):
        await tool.aclose()
    overhead = call["caged"] - call["plain"]
    return [
        Row(
            "first result, cold sandboxed kernel",
            f"{cold['caged']:.0f} ms",
            f"without sandbox {cold['plain']:.0f} ms",
            cold["caged"] / cold["plain"],
            "≤ 1500 ms",
        ),
        Row("first result, kernel started ahead", f"{statistics.median(warm):.0f} ms", "", target="≤ 60 ms"),
        Row(
            "call of a sandboxed kernel",
            f"{call['caged']:.1f} ms",
            f"without sandbox {call['plain']:.1f} ms",
            call["caged"] / call["plain"],
            f"≤ 5 ms more (here {overhead:+.1f})",
        ),
    ]


async def _medians(tools: Mapping[str, CodeInterpreter], *, rounds: int, cold: bool) -> dict[str, float]:
    """Return the median time of each tool, measured in turns."""
    samples: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(rounds):
        for name, tool in tools.items():
            samples[name].append(await _first(tool, cold=cold))
    return {name: statistics.median(taken) for name, taken in samples.items()}


async def _first(tool: CodeInterpreter, *, cold: bool) -> float:
    """Return the milliseconds until a result. If `cold`, a new kernel is started first."""
    if cold:
        await tool.aclose()
    started = time.perf_counter()
    await tool.call(CODE)
    return (time.perf_counter() - started) * 1000


def _programs() -> list[Row]:
    sandbox = choose_sandbox("auto", ProgramSandbox, host=default_host())
    if sandbox is None:
        raise RuntimeError("auto is never none")
    with tempfile.TemporaryDirectory() as folder:
        command = sandbox.command(Program(argv=("true",), work_dir=folder, limits=Limits(processes=20)))
        took = in_turns(
            {
                "caged": lambda: subprocess.run(command, check=True, env={}),
                "plain": lambda: subprocess.run(["true"], check=True, env={}),
            },
            rounds=15,
            clock=wall_ms,
        )
    return [Row("program in a sandbox", f"{took['caged']:.0f} ms", f"without {took['plain']:.0f} ms")]


async def _at_once(count: int) -> Row:
    # All kernels share the machine, so the last one answers once all have started.
    tools = [CodeInterpreter(sandbox="auto", start_timeout=300) for _ in range(count)]
    started = time.perf_counter()
    await asyncio.gather(*(tool.call(CODE) for tool in tools))
    took = time.perf_counter() - started
    processes = list(_below(os.getpid()))
    held = sum(_proportional_mb(pid) for pid in processes) / count
    await asyncio.gather(*(tool.aclose() for tool in tools))
    left = [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    return Row(
        f"{count} kernels at once",
        f"{held:.0f} MB each",
        f"started in {took:.1f} s, {len(left)} processes left",
        target="≤ 100 MB each, none left",
    )


def _below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text(encoding="ascii").split()):
                yield child
                yield from _below(child)


def _proportional_mb(pid: int) -> float:
    """Return a process's memory, including its proportional share of shared memory."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
