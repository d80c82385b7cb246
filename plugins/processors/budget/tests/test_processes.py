"""Several processes spend from one budget."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from jackfield_budget.shared import ledgers
from jackfield_testkit.forks import outputs_of

PROGRAM = """
import asyncio, os, sys, time
from jackfield.errors import LimitReachedError
from jackfield.events import ModelFinished, UsageReported
from jackfield.messages import Message, Usage
from jackfield.request import ChatRequest
from jackfield_budget.processor import Budget

sys.stderr = sys.stdout  # what it complains of is seen, too
path, here = sys.argv[1:]
rows = [{"models": ["m"], "currency": "EUR", "valid_from": "2020-01-01", "input": "1", "output": "1"}]
budget = Budget(path=path, per="total", limit="0.010", currency="EUR", prices=rows)
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

os.close(os.open(f"{here}/{os.getpid()}", os.O_CREAT))
while len(os.listdir(here)) < 3:  # all make the file at the same moment
    time.sleep(0.001)
asyncio.run(main())
"""


def test_three_processes_spend_from_one_budget(path: Path, tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    answered = sum(map(int, outputs_of(PROGRAM, [(path, here)] * 3)))
    # A thousandth each; one that is set aside while another runs may be in the way, and up to two may come too many.
    assert 8 <= answered <= 12
    ledger = ledgers().ledger(path)
    assert ledger.change("|total|EUR", lambda account: account.spent["total"]) == answered * Decimal("0.001")
