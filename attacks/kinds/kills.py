"""Processes that are killed while writing shared files: the cache, the budget, the rate limits."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial

from attacks.kind import Attempt, Kind, law
from attacks.speaking import model_of, says, server_of
from jackfield_testkit import replies
from jackfield_testkit.server import RecordedRequest

_WRITER = """
import sys, itertools
from attacks.kinds.kills import processors
from attacks.speaking import model_of, says
model = model_of("openai", sys.argv[1], processors=processors(sys.argv[2]))
for number in itertools.count(int(sys.argv[3])):
    says(model, f"question {number}")
    print(number, flush=True)
"""


def processors(folder: str) -> list[dict[str, object]]:
    """Return all processors that write a file, each with its own."""
    price = {"models": ["*"], "currency": "USD", "valid_from": "2020-01-01", "input": 1, "output": 1}
    return [
        {"name": "cache", "path": f"{folder}/cache"},
        {"name": "budget", "path": f"{folder}/budget", "limit": 1000, "per": "day", "prices": {"price": [price]}},
        {
            "name": "rate_limits",
            "path": f"{folder}/limits",
            "requests_per_minute": 1_000_000,
            "tokens_per_minute": 10**9,
        },
    ]


def _answer(request: RecordedRequest) -> replies.Reply:
    return replies.text(f"answer to {request.json['messages'][-1]['content']}")


def _killed(writers: int, after: tuple[int, ...]) -> None:
    server = server_of("openai")
    server.clear()
    server.respond(_answer)
    folder = tempfile.mkdtemp()
    command = [sys.executable, "-c", _WRITER, server.url, folder]
    processes = [
        subprocess.Popen([*command, str(1000 * number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in range(writers)
    ]
    try:
        for process, lines in zip(processes, after, strict=True):
            for _ in range(lines):
                if process.stdout and not process.stdout.readline():
                    law(False, f"a writer failed: {process.communicate()[1][-300:]!r}")
            process.kill()
        for process in processes:
            process.kill()
            process.communicate()
        model = model_of("openai", server.url, processors=processors(folder))
        asked = len(server.requests)
        for number in (*range(3), *range(1000, 1003), 5_000_000):
            said = says(model, f"question {number}")
            law(said == f"answer to question {number}", f"question {number} was answered {said!r}")
        kept = len(server.requests) - asked
        law(kept <= 4, f"of what was answered and kept, {kept} questions were asked again")
        shutil.rmtree(folder)
    finally:
        for process in processes:
            process.kill()


def _attempts(dice: random.Random) -> Iterator[Attempt]:
    while True:
        writers = dice.choice([1, 2, 3])
        after = tuple(dice.randrange(4, 20) for _ in range(writers))
        yield Attempt(f"{writers} writers killed after {after} answers", partial(_killed, writers, after), timeout_s=60)


KIND = Kind("A killed process leaves files that the next process can use.", _attempts, quick=1)
