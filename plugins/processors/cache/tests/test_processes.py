"""Several processes on one file, and a process that forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from jackfield_cache.store import Store

WRITER = """
import sys
from pathlib import Path
from jackfield_cache.store import Store

path, name = Path(sys.argv[1]), sys.argv[2].encode()
print("ready", flush=True)
sys.stdin.readline()
store = Store(path, ttl_s=None, max_bytes=1_000_000, busy_s=30)  # a slow disk is no loss
for number in range(60):
    store.put(b"%s %d" % (name, number), name * 100)
    assert store.get(b"%s %d" % (name, number)).content == name * 100
    store.put(b"shared", name * 100)
store.close()
"""


def test_processes_that_write_at_once_lose_nothing_and_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    names = ["one", "two", "three"]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:  # all make the file at the same moment
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert (writer.returncode, said) == (0, "")
    store = Store(path, ttl_s=None, max_bytes=1_000_000)
    for name in names:
        for number in range(60):
            kept = store.get(f"{name} {number}".encode())
            assert kept is not None
            assert kept.content == name.encode() * 100
    shared = store.get(b"shared")
    assert shared is not None
    assert shared.content in [name.encode() * 100 for name in names]
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_opens_the_file_for_itself_and_harms_nobody(tmp_path: Path) -> None:
    store = Store(tmp_path / "answers.sqlite", ttl_s=None, max_bytes=1_000_000)
    store.put(b"of the parent", b"1")
    # As if another thread of the parent were using it.
    with store._file.use(patience_s=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
        if not child:
            signal.alarm(30)  # a child that waits for the parent's lock waits for ever
            kept = store.get(b"of the parent")
            store.put(b"of the child", b"2")
            os._exit(0 if kept and kept.content == b"1" else 1)
    assert os.waitpid(child, 0)[1] == 0
    kept = store.get(b"of the child")
    assert kept is not None
    store.put(b"of the parent again", b"3")
    assert store.get(b"of the parent again") is not None
    store.close()


def test_a_process_that_ends_right_after_an_answer_has_kept_it(tmp_path: Path) -> None:
    asks = """
import os, sys
from jackfield import sync
from jackfield.testing import ScriptedModel, answer
from jackfield_cache.processor import Cache
model = ScriptedModel([answer("kept")], config={"model": "m"}, processors=[Cache(path=sys.argv[1])])
print(sync.run(model.acomplete([{"role": "user", "content": "hello"}])).get_content(), flush=True)
os._exit(0)
"""
    for script_answers in (1, 0):  # the second process has a model without an answer
        source = asks if script_answers else asks.replace('answer("kept")', "")
        done = subprocess.run(
            [sys.executable, "-c", source, str(tmp_path / "answers.sqlite")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "kept\n"), done.stderr
