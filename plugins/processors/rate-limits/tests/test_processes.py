"""Several processes on one file."""

from __future__ import annotations

from pathlib import Path

from jackfield_testkit.forks import outputs_of

PROGRAM = """
import asyncio, os, sys, time
from pathlib import Path
from jackfield.errors import RateLimitedError
from jackfield.events import ModelFinished
from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield_rate_limits.processor import RateLimits

sys.stderr = sys.stdout  # what it complains of is seen, too
path, busy, here = map(Path, sys.argv[1:])
request = ChatRequest("m", (Message("user", "hello"),), server="s")

async def ask(limits, scope):
    mine = busy.with_name(scope)  # one process may have come to the next scope, while another is in this one

    async def serve(request):
        os.close(os.open(mine, os.O_CREAT | os.O_EXCL))  # fails if another process is being answered
        await asyncio.sleep(0.002)
        mine.unlink()
        yield ModelFinished("stop")

    async for event in limits.wrap(serve)(request):
        pass

async def main():
    one_at_a_time = RateLimits(path=path, max_concurrency=1, scope="places")
    for _ in range(8):
        await ask(one_at_a_time, "places")
    few = RateLimits(path=path, max_concurrency=1, requests_per_minute=7, max_wait_s=20, scope="requests")
    answered = 0
    for _ in range(7):
        try:
            await ask(few, "requests")
            answered += 1
        except RateLimitedError:
            pass
    print(answered)

(here / str(os.getpid())).touch()
while len(os.listdir(here)) < 3:  # all make the file at the same moment
    time.sleep(0.001)
asyncio.run(main())
"""


def test_three_processes_share_the_places_and_the_requests_of_a_minute(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    printed = outputs_of(PROGRAM, [(tmp_path / "limits.sqlite", tmp_path / "busy", here)] * 3)
    assert sum(map(int, printed)) == 7
