"""Several processes on one file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from jackfield.errors import RateLimitedError
from jackfield.events import ModelFinished
from jackfield.messages import Message
from jackfield.request import ChatRequest
from jackfield_rate_limits.processor import RateLimits

path, busy = Path(sys.argv[1]), Path(sys.argv[2])
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

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def test_three_processes_share_the_places_and_the_requests_of_a_minute(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "limits.sqlite"), str(tmp_path / "busy")],
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
    answered = []
    for process in processes:
        out, complaints = process.communicate(timeout=60)
        assert (process.returncode, complaints) == (0, "")
        answered.append(int(out))
    assert sum(answered) == 7
