"""Several processes spend from one budget."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from jackfield_budget.shared import ledgers

PROGRAM = """
import asyncio, sys
from jackfield.errors import LimitReachedError
from jackfield.events import ModelFinished, UsageReported
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest
from jackfield_budget.processor import Budget

rows = [{"models": ["m"], "currency": "EUR", "valid_from": "2020-01-01", "input": "1", "output": "1"}]
budget = Budget(path=sys.argv[1], per="total", limit="0.010", currency="EUR", prices=rows)
request = ChatRequest("m", (Message("user", "hello"),), server="s")

async def serve(request):
    yield UsageReported(Usage(prompt_tokens=500, completion_tokens=500))
    yield ModelFinished("stop")

async def main():
    answered = 0
    for _ in range(10):
        try:
            async for event in budget.wrap(serve)(request):
                pass
            answered += 1
        except LimitReachedError:
            pass
    print(answered)

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def test_three_processes_spend_from_one_budget(path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all make the file at the same moment
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    answered = 0
    for process in processes:
        out, complaints = process.communicate(timeout=60)
        assert (process.returncode, complaints) == (0, "")
        answered += int(out)
    # A thousandth each; one that is set aside while another runs may be in the way, and up to two may come too many.
    assert 8 <= answered <= 12
    ledger = ledgers().ledger(path)
    assert ledger.change("|total|EUR", lambda account: account.spent["total"]) == answered * Decimal("0.001")
