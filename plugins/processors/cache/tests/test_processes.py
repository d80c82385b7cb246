"""Several processes on one file, and a process that forks."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path

import pytest

from jackfield_cache.store import Store
from jackfield_testkit.forks import output_of, outputs_of

WRITER = """
import os, sys, time
from pathlib import Path
from jackfield_cache.store import Store

sys.stderr = sys.stdout  # what it complains of is seen, too
path, name, here = Path(sys.argv[1]), sys.argv[2].encode(), Path(sys.argv[3])
(here / str(os.getpid())).touch()
while len(os.listdir(here)) < 3:  # all make the file at the same moment
    time.sleep(0.001)
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
    (here := tmp_path / "here").mkdir()
    assert outputs_of(WRITER, [(path, name, here) for name in names]) == [""] * 3
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
        assert output_of(source, tmp_path / "answers.sqlite") == "kept"
