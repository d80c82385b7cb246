"""The bridge from async to sync: errors, context, cancelling, and no event lost or waited for in vain."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield import sync
from jackfield.errors import JackfieldError

LIMIT = 1024
NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="nobody")


async def nothing() -> None:
    """Give the loop a round."""


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


def in_a_process(script: str) -> str:
    """What a script prints in a process of its own, which must end well."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- results and errors ---


def test_a_result_comes_back() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    assert sync.run(answer()) == 42


def test_an_error_arrives_as_it_was_raised() -> None:
    error = KeyError("x")

    async def fail() -> None:
        raise error

    async def fail_later() -> AsyncIterator[int]:
        yield 1
        raise error

    with pytest.raises(KeyError) as caught:
        sync.run(fail())
    assert caught.value is error
    got = []
    with pytest.raises(KeyError) as caught:
        got += sync.iterate(fail_later())
    assert caught.value is error


def test_what_arrived_before_an_error_arrives_first() -> None:
    async def fail_later() -> AsyncIterator[int]:
        yield 1
        yield 2
        raise KeyError("x")

    items = sync.iterate(fail_later())
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(KeyError):
        next(items)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
def test_an_error_that_ends_programs_arrives_too_and_the_bridge_goes_on(error: BaseException) -> None:
    script = """
        import asyncio, threading
        from jackfield import sync

        async def fail():
            raise {error}

        async def fail_later():
            yield 1
            raise {error}

        async def answer():
            return 42

        for attempt in (lambda: sync.run(fail()), lambda: list(sync.iterate(fail_later()))):
            try:
                attempt()
            except BaseException as error:
                print(type(error).__name__)
            got = []
            thread = threading.Thread(target=lambda: got.append(sync.run(answer())), daemon=True)
            thread.start()
            thread.join(5)
            print(got)
    """
    # In a process of its own: a bridge that breaks would take every later test with it.
    call = f"{type(error).__name__}()" if not isinstance(error, asyncio.CancelledError) else "asyncio.CancelledError()"
    kind = type(error).__name__
    assert in_a_process(script.format(error=call)).splitlines() == [kind, "[42]", kind, "[42]"]


@given(st.integers(0, 3000))
@settings(max_examples=settings().max_examples // 2)
def test_every_item_comes_once_and_in_order(count: int) -> None:
    assert list(sync.iterate(numbers(count))) == list(range(count))
    assert [number for batch in sync.batches(numbers(count)) for number in batch] == list(range(count))


def test_no_batch_is_empty() -> None:
    assert all(sync.batches(numbers(3000)))


def test_context_variables_travel() -> None:
    async def name() -> str:
        return NAME.get()

    async def names() -> AsyncIterator[str]:
        yield NAME.get()

    async def in_thread() -> str:
        return await sync.in_worker(NAME.get)

    token = NAME.set("Bob")
    try:
        assert sync.run(name()) == "Bob"
        assert list(sync.iterate(names())) == ["Bob"]
        assert sync.run(in_thread()) == "Bob"
    finally:
        NAME.reset(token)
    assert sync.run(name()) == "nobody"


# --- leaving ---


def test_leaving_early_closes_the_generator_where_it_was_opened() -> None:
    tasks: list[asyncio.Task[None] | None] = []

    async def forever() -> AsyncIterator[int]:
        tasks.append(asyncio.current_task())
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            tasks.append(asyncio.current_task())

    with sync.iterate(forever()) as items:
        next(items)
    batches = sync.batches(forever())
    next(batches)
    batches.close()
    opened, closed, opened_again, closed_again = tasks
    assert opened is closed is not None
    assert opened_again is closed_again is not None
    assert list(items) == list(batches) == []


def test_a_stream_that_is_dropped_is_cancelled_and_nobody_waits_for_it() -> None:
    closed = threading.Event()
    may_close = threading.Event()

    async def slow_to_close() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            while not may_close.is_set():
                await asyncio.sleep(0.01)
            closed.set()

    for _ in sync.iterate(slow_to_close()):
        break
    assert not closed.is_set()
    may_close.set()
    assert closed.wait(20)


def test_streams_that_are_collected_on_the_loops_own_thread_do_not_stop_it() -> None:
    script = """
        import asyncio
        from jackfield import sync

        async def forever():
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                closed.append(1)

        async def drop():
            kept.clear()  # the last references, on the thread that would have to close what they wait for
            while len(closed) < 10:
                await asyncio.sleep(0)

        closed, kept = [], [sync.iterate(forever()) for _ in range(10)]
        for stream in kept: next(stream)
        del stream
        sync.run(drop())
        print(len(closed))
    """
    assert in_a_process(script) == "10"  # with a wait of five seconds for each, it would be ended long before


def test_a_closed_stream_yields_nothing_more_even_of_a_batch_that_has_arrived() -> None:
    stream = sync.iterate(numbers(9))
    with stream:
        assert next(stream) == 0
    assert list(stream) == []


def test_a_stream_can_be_closed_from_another_thread_even_before_its_first_step() -> None:
    begun: list[bool] = []

    async def noting() -> AsyncIterator[int]:
        begun.append(True)
        yield 1

    async def stop_the_loop() -> None:
        stopped.set()
        goes_on.wait(20)

    for _ in range(10):  # with a wait of five seconds for each, it would take too long
        stopped, goes_on = threading.Event(), threading.Event()
        blocking = threading.Thread(target=sync.run, args=(stop_the_loop(),))
        blocking.start()
        assert stopped.wait(20)
        items, got = sync.iterate(noting()), list[int]()
        consuming = threading.Thread(target=lambda got=got, items=items: got.extend(items))
        consuming.start()
        while items._pump._call is None:
            time.sleep(0.001)
        closing = threading.Thread(target=items.close)
        closing.start()
        while not items._pump._stopped:
            time.sleep(0.001)
        goes_on.set()
        for thread in (closing, consuming, blocking):
            thread.join(20)
            assert not thread.is_alive()
        assert got == []
    assert begun == []


def test_a_generator_that_takes_no_notice_of_being_cancelled_is_closed_at_its_next_item() -> None:
    closed = threading.Event()

    async def stubborn() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.001)
        finally:
            closed.set()

    with sync.iterate(stubborn()) as items:
        next(items)
    assert closed.wait(20)


def test_a_process_ends_with_streams_unfinished_and_closes_them_first() -> None:
    script = """
        import asyncio
        from jackfield import sync

        async def forever():
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                print("closed", flush=True)

        async def stubborn():
            while True:
                try:
                    yield 1
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    pass

        kept = [sync.iterate(make()) for make in (forever, stubborn) for _ in range(10)]
        for stream in kept: next(stream)
        circle = [kept]
        circle.append(circle)
    """
    assert in_a_process(script) == "\n".join(["closed"] * 10)


def test_the_exit_of_a_forked_child_leaves_its_parents_loop_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    background = sync._this_process().background()
    called: list[object] = []
    monkeypatch.setattr(background, "call", lambda function, *_: called.append(function))
    monkeypatch.setattr(background, "_process", os.getppid())  # as in a child
    background._at_exit()
    assert called == []


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
def test_whatever_leaves_a_task_or_a_callback_the_loop_goes_on_for_all_others(error: str) -> None:
    script = f"""
        import asyncio, threading
        from jackfield import sync

        async def fail():
            raise {error}

        def fail_now():
            raise {error}

        async def inner_task():
            await asyncio.create_task(fail())

        async def group():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail())

        async def callback():
            asyncio.get_running_loop().call_soon(fail_now)
            await asyncio.sleep(0.01)

        async def worker():
            await sync.in_worker(fail_now)

        async def stopped():
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0.01)

        async def bystander():
            begun.set()
            while not over.is_set():
                await asyncio.sleep(0.001)
            return "well"

        begun, over, got = threading.Event(), threading.Event(), []
        thread = threading.Thread(target=lambda: got.append(sync.run(bystander())))
        thread.start()
        begun.wait()
        for mistake in (inner_task, group, callback, worker, stopped):
            try:
                sync.run(mistake())
                print(mistake.__name__, "came back")
            except BaseException as raised:
                print(mistake.__name__, type(raised).__name__)
        over.set()
        thread.join()
        print(got)
    """
    assert in_a_process(script).splitlines() == [
        f"inner_task {error}",
        f"group {error}",
        "callback came back",
        f"worker {error}",
        "stopped came back",
        "['well']",
    ]


def test_a_loop_that_broke_is_replaced_and_all_who_wait_for_it_get_an_error() -> None:
    script = """
        import asyncio, logging, threading
        from jackfield import sync
        from jackfield.errors import JackfieldError

        logging.disable()

        async def forever():
            while True:
                yield 1
                begun.release()
                await asyncio.Event().wait()

        async def wait():
            async for _ in forever(): pass

        def told(attempt):
            try:
                attempt()
            except JackfieldError as error:
                got.append(str(error))

        async def break_it():
            asyncio.get_running_loop()._selector.close()

        async def answer():
            return 42

        got, begun = [], threading.Semaphore(0)
        waits = [lambda: sync.run(wait()), lambda: list(sync.iterate(forever()))]
        threads = [threading.Thread(target=told, args=(attempt,)) for attempt in waits]
        for thread in threads: thread.start()
        for thread in threads: begun.acquire()
        told(lambda: sync.run(break_it()))
        for thread in threads: thread.join()
        print(len(got), {text[:41] for text in got}, sync.run(answer()))
    """
    lines = in_a_process(script)
    assert lines in (f"{count} {{'the background event loop stopped before '}} 42" for count in (2, 3))


def test_what_a_plain_generator_makes_of_the_items_comes_and_its_error_closes_the_stream() -> None:
    closed: list[bool] = []

    async def noting() -> AsyncIterator[int]:
        try:
            for number in range(3):
                yield number
                await asyncio.sleep(0)
        finally:
            closed.append(True)

    def doubled(batches: Iterator[list[int]]) -> Iterator[int]:
        for batch in batches:
            yield from (2 * number for number in batch)

    def failing(batches: Iterator[list[int]]) -> Iterator[int]:
        for batch in batches:
            yield batch[0]
            raise KeyError("x")

    assert list(sync.stream(noting(), doubled)) == [0, 2, 4]
    items = sync.stream(noting(), failing)
    assert next(items) == 0
    with pytest.raises(KeyError):
        next(items)
    assert closed == [True, True]


def test_a_generator_that_was_never_begun_runs_nothing() -> None:
    begun: list[bool] = []

    async def noting() -> AsyncIterator[int]:
        begun.append(True)
        yield 1

    sync.iterate(noting())
    unbegun = sync.batches(noting())
    unbegun.close()
    assert list(unbegun) == []
    sync.run(nothing())
    assert begun == []


def test_a_producer_never_runs_more_than_the_limit_ahead() -> None:
    produced = 0

    async def counting() -> AsyncIterator[int]:
        nonlocal produced
        while True:
            produced += 1
            yield produced

    taken = 0
    batches = sync.batches(counting())
    for batch in batches:
        taken += len(batch)
        sync.run(nothing())  # the producer has had its turn after this
        assert produced - taken <= LIMIT
        if taken > 5 * LIMIT:
            break
    batches.close()


def test_a_consumer_and_a_producer_of_any_pace_never_wait_for_each_other_in_vain() -> None:
    received = 0

    def consume() -> None:
        nonlocal received
        for turn in range(150):
            for batch in sync.batches(numbers(5000)):
                received += len(batch)
                for _ in range((turn * 7919) % 4000):  # a pace of its own for each round
                    pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet in all the places where they can
    try:
        thread = threading.Thread(target=consume, daemon=True)
        thread.start()
        thread.join(30)
    finally:
        sys.setswitchinterval(interval)
    assert received == 150 * 5000


def test_ctrl_c_cancels_the_work() -> None:
    script = """
        import asyncio, signal, threading
        from jackfield import sync

        # A runner in the background leaves SIGINT ignored to its children.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        async def work():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                print("cancelled")
                raise

        try:
            sync.run(work())
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert in_a_process(script).splitlines() == ["cancelled", "interrupted"]


# --- other loops and other processes ---


def test_it_works_under_a_running_loop() -> None:
    async def in_a_notebook() -> tuple[list[int], bool]:
        async def loop_of_the_bridge() -> asyncio.AbstractEventLoop:
            return asyncio.get_running_loop()

        return list(sync.iterate(numbers(3))), sync.run(loop_of_the_bridge()) is asyncio.get_running_loop()

    assert asyncio.run(in_a_notebook()) == ([0, 1, 2], False)


def test_a_blocking_call_inside_the_bridges_own_loop_is_refused() -> None:
    async def wait_for_oneself() -> None:
        sync.run(nothing())

    async def iterate_oneself() -> None:
        next(sync.iterate(numbers(3)))

    for mistake in (wait_for_oneself, iterate_oneself):
        with pytest.raises(JackfieldError, match="use the async counterpart"):
            sync.run(mistake())


@pytest.mark.parametrize(
    "last_line",
    [
        "print(sync.run(ask()))",
        "print(list(sync.iterate(steps())))",
        "import asyncio; print(asyncio.run(ask()))",
        "import asyncio; print(asyncio.run(sync.in_worker(load)))",
        "print(sync.run(ask_on_the_loop()))",
    ],
    ids=["run", "iterate", "shared worker", "worker", "loop"],
)
def test_a_script_with_the_name_of_a_package_that_it_needs_gets_an_error(last_line: str, tmp_path: Path) -> None:
    script = tmp_path / "h2_like.py"
    script.write_text(
        textwrap.dedent(f"""
            from jackfield import sync

            def load():
                import h2_like  # what the script is named like
                return h2_like

            async def ask():
                await sync.shared_in_worker(load)

            async def ask_on_the_loop():
                return load()

            async def steps():
                yield await ask()

            {last_line}
        """),
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout
    assert done.stderr.splitlines()[-1] == (
        f"jackfield.errors.JackfieldError: Python imported {script} instead of the package 'h2_like' that it was "
        "looking for, and this file waits for a result while it is imported: rename the file"
    )


@pytest.mark.parametrize("own", ["h2_like.py", "h2_like/__init__.py"])
def test_a_file_with_the_name_of_a_package_beside_the_script_gets_an_error(own: str, tmp_path: Path) -> None:
    ask = """
        import sys
        from jackfield import sync

        def load():
            import client_like  # needs a package h2_like

        async def ask():
            await sync.shared_in_worker(load)
    """
    file, client, script = tmp_path / own, tmp_path / "site/client_like/deep/part.py", tmp_path / "main.py"
    for path in (file, client):
        path.parent.mkdir(parents=True, exist_ok=True)
    client.write_text("import h2_like")
    (client.parent.parent / "__init__.py").write_text("import client_like.deep.part")
    (tmp_path / "other.py").write_text(textwrap.dedent(f"{ask}\n        sync.run(ask())"))
    file.write_text("import other")
    script.write_text(
        textwrap.dedent(f"{ask}\n        sys.path.append({str(tmp_path / 'site')!r})\n        sync.run(ask())")
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout
    assert f"JackfieldError: Python imported {file} instead of the package 'h2_like'" in done.stderr.splitlines()[-1]


def test_a_module_may_wait_while_it_is_imported_unless_a_package_imports_it(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(
        "from jackfield import sync\nasync def answer(): return 42\nit = sync.run(answer())"
    )
    (tmp_path / "between.py").write_text("import other")
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent("""
            from jackfield import sync

            def load():
                import between
                return between.other.it

            print(sync.run(sync.in_worker(load)))
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


def test_a_script_may_be_imported_again_where_nothing_waits_for_it(tmp_path: Path) -> None:
    script = tmp_path / "again.py"
    script.write_text(
        textwrap.dedent("""
            from jackfield import sync

            async def answer():
                return 42

            def load():
                import again
                return sync.run(answer())

            if __name__ == "__main__":
                print(sync.run(sync.in_worker(load)))
        """),
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "42\n", done.stderr


def test_a_worker_of_the_bridge_may_cross_it() -> None:
    async def answer() -> int:
        return 42

    async def outer() -> int:
        return await sync.in_worker(lambda: sync.run(answer()))

    assert sync.run(outer()) == 42


def test_many_threads_share_one_loop() -> None:
    script = """
        import asyncio, sys, threading
        from jackfield import sync

        async def loop():
            return asyncio.get_running_loop()

        def ask():
            barrier.wait()
            loops.append(sync.run(loop()))

        sys.setswitchinterval(1e-6)
        loops, barrier = [], threading.Barrier(16)
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(loops), len(set(map(id, loops))))
    """
    assert in_a_process(script) == "16 1"


def test_it_works_after_a_fork() -> None:
    script = """
        import asyncio, os
        from jackfield import sync

        async def answer():
            return await sync.in_worker(lambda: 42)

        async def numbers():
            for number in range(3): yield number

        assert sync.run(answer()) == 42
        child = os.fork()
        if not child:
            ok = sync.run(answer()) == 42 and list(sync.iterate(numbers())) == [0, 1, 2]
            os._exit(0 if ok else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sync.run(answer()))
    """
    assert in_a_process(script) == "0 42"


def test_importing_starts_nothing_and_an_abandoned_worker_does_not_keep_the_process() -> None:
    script = """
        import asyncio, threading
        from jackfield import sync
        assert threading.active_count() == 1
        never = threading.Event()

        async def give_up():
            try:
                await asyncio.wait_for(sync.in_worker(never.wait), 0.01)
            except TimeoutError:
                print("given up")

        asyncio.run(give_up())
    """
    assert in_a_process(script) == "given up"


# --- workers ---


def test_as_many_workers_as_are_needed_run_at_once() -> None:
    barrier = threading.Barrier(20)

    async def meet() -> int:
        await asyncio.gather(*(sync.in_worker(barrier.wait, 20) for _ in range(20)))
        return 20

    assert sync.run(meet()) == 20
    assert asyncio.run(meet()) == 20


def test_idle_workers_are_used_again() -> None:
    async def one_after_another() -> set[int]:
        seen = set()
        for _ in range(50):
            seen.add(await sync.in_worker(threading.get_ident))
            await asyncio.sleep(0.001)  # a worker is idle a moment after its result is there
        return seen

    before = threading.active_count()
    sync.run(one_after_another())
    assert threading.active_count() - before < 25


@pytest.mark.parametrize("error", [KeyError("x"), StopIteration(), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_what_a_worker_raises_arrives(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def caught(way: Callable[[Callable[[], None]], Awaitable[None]]) -> BaseException:
        try:
            await way(fail)
        except BaseException as arrived:
            return arrived
        return AssertionError("nothing was raised")

    for way in (sync.in_worker, sync.shared_in_worker):
        arrived = asyncio.run(caught(way))
        if isinstance(error, StopIteration | asyncio.CancelledError):  # a task would take them for something else
            assert isinstance(arrived, RuntimeError)
            assert type(error).__name__ in str(arrived)
            assert arrived.__cause__ is error
        else:
            assert arrived is error


def test_calls_that_are_shared_run_once_for_the_tasks_of_all_loops() -> None:
    calls: list[int] = []
    goes_on = threading.Event()

    def opening() -> int:
        calls.append(1)
        assert goes_on.wait(20)
        return len(calls)

    async def ask(count: int) -> list[int]:
        asked = [asyncio.create_task(sync.shared_in_worker(opening)) for _ in range(count)]
        cancelled = asyncio.create_task(sync.shared_in_worker(opening))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        waiting.release()
        return await asyncio.gather(*asked)

    waiting = threading.Semaphore(0)
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(asyncio.run, ask(20)) for _ in range(3)]
        for _ in answers:
            assert waiting.acquire(timeout=20)
        goes_on.set()
        assert [answer.result(20) for answer in answers] == [[1] * 20] * 3
    assert asyncio.run(sync.shared_in_worker(opening)) == 2  # what is kept is kept by the function


def test_an_abandoned_function_that_waits_for_the_bridge_still_runs() -> None:
    waits, may_end = threading.Event(), threading.Event()

    async def waiting() -> None:
        waits.set()
        while not may_end.is_set():
            await asyncio.sleep(0.01)

    async def abandon() -> list[str]:
        task = asyncio.create_task(sync.in_worker(lambda: sync.run(waiting())), name="waits for the bridge")
        await asyncio.to_thread(waits.wait, 20)
        task.cancel()
        await asyncio.wait([task])
        return sync.abandoned()

    try:
        assert "waits for the bridge" in asyncio.run(abandon())
    finally:
        may_end.set()


def test_calls_with_other_arguments_are_not_shared() -> None:
    async def ask() -> list[int]:
        by_place = (sync.shared_in_worker(abs, number) for number in (-1, -2, -1))
        by_keyword = (sync.shared_in_worker(int, "11", base=base) for base in (2, 3, 2))
        return await asyncio.gather(*by_place, *by_keyword)

    assert sync.run(ask()) == [1, 2, 1, 3, 4, 3]


def test_a_shared_call_that_failed_is_tried_again_by_who_asks_next() -> None:
    errors = iter([KeyError("first"), None])
    both_have_asked = threading.Event()

    def opening() -> str:
        both_have_asked.wait(20)
        error = next(errors)
        if error is not None:
            raise error
        return "open"

    async def twice() -> list[str | BaseException]:
        calls = [asyncio.create_task(sync.shared_in_worker(opening)) for _ in range(2)]
        await asyncio.sleep(0)
        both_have_asked.set()
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second = sync.run(twice())
    assert isinstance(first, KeyError)
    assert second is first
    assert sync.run(sync.shared_in_worker(opening)) == "open"


def test_work_in_the_background_is_done_even_if_nobody_waits_for_it_any_more() -> None:
    done, goes_on = threading.Event(), threading.Event()

    def work() -> None:
        goes_on.wait(20)
        done.set()

    async def leave() -> None:
        work_done = sync.in_background(work)
        waiting = asyncio.wrap_future(work_done)
        waiting.cancel()
        assert not work_done.cancel()
        over.append(work_done)

    over: list[Future[None]] = []
    asyncio.run(leave())
    goes_on.set()
    assert done.wait(20)
    assert over[0].result(20) is None


def test_a_cancelled_wait_has_the_result_of_a_function_that_had_returned() -> None:
    async def cancelled_too_late() -> BaseException:
        loop, arrived = asyncio.get_running_loop(), threading.Event()
        call_soon_threadsafe = loop.call_soon_threadsafe

        def arrive(*args: Any, **options: Any) -> asyncio.Handle:
            handle = call_soon_threadsafe(*args, **options)
            arrived.set()
            return handle

        loop.call_soon_threadsafe = arrive  # type: ignore[method-assign, assignment]
        task = asyncio.create_task(sync.in_worker(lambda: 7))
        await asyncio.sleep(0)
        assert arrived.wait(20)  # the loop waits, so that it has not seen the result yet
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error
        raise AssertionError("it was not cancelled")

    error = asyncio.run(cancelled_too_late())
    assert sync.result_of_cancelled(error) == (7,)
    assert not sync.is_abandoned(error)


# --- how many workers ---

# In a process of their own, with fewer threads than there are.
FEW = """
    import asyncio, functools, logging, threading, time
    from jackfield import sync
    from jackfield.errors import JackfieldError
    sync.MAX_WORKERS, sync.MAX_ABANDONED = 4, 0

    def workers():
        return sum(thread.name == "jackfield-worker" for thread in threading.enumerate())

    async def outcome(wait):
        try:
            return await wait
        except JackfieldError as error:
            return str(error)
"""


def with_few_workers(script: str) -> list[str]:
    return in_a_process(textwrap.dedent(FEW) + textwrap.dedent(script)).splitlines()


def test_more_calls_than_threads_wait_for_their_turn_and_none_is_lost() -> None:
    script = """
        def work(number):
            most.append(workers())
            return number

        async def many():
            return await asyncio.gather(*(sync.in_worker(work, number) for number in range(500)))

        most = []
        print(sync.run(many()) == list(range(500)), max(most) <= 4)
    """
    assert with_few_workers(script) == ["True True"]


def test_workers_that_wait_for_other_workers_do_not_hold_them_up() -> None:
    script = """
        async def numbers(depth):
            yield await sync.in_worker(nested, depth)

        def nested(depth):
            if not depth:
                return 1
            return sync.run(sync.in_worker(nested, depth - 1)) + sum(sync.iterate(numbers(depth - 1)))

        async def many():
            return await asyncio.gather(*(sync.in_worker(nested, 2) for _ in range(40)))

        print(set(sync.run(many())))
    """
    assert with_few_workers(script) == ["{4}"]


def test_a_worker_that_has_waited_for_the_bridge_counts_again() -> None:
    script = """
        def cross_and_wait():
            sync.run(asyncio.sleep(0))
            begun.append(1)
            goes_on.wait()

        async def five():
            four = [asyncio.create_task(sync.in_worker(cross_and_wait)) for _ in range(4)]
            while len(begun) < 4: await asyncio.sleep(0.001)
            fifth = asyncio.create_task(sync.in_worker(ran.append, 5))
            await asyncio.sleep(0.1)  # enough to begin, if it could
            print(ran)
            goes_on.set()
            await asyncio.gather(*four, fifth)
            print(ran)

        begun, ran, goes_on = [], [], threading.Event()
        sync.run(five())
    """
    assert with_few_workers(script) == ["[]", "[5]"]


def test_a_call_that_is_cancelled_before_its_turn_never_runs() -> None:
    script = """
        async def cancel_some():
            busy = [asyncio.create_task(sync.in_worker(goes_on.wait)) for _ in range(4)]
            waiting = [asyncio.create_task(sync.in_worker(ran.append, number)) for number in range(10)]
            await asyncio.sleep(0.01)
            for task in waiting[:5]: task.cancel()
            await asyncio.wait(waiting[:5])
            goes_on.set()
            await asyncio.gather(*busy, *waiting[5:])

        ran, goes_on = [], threading.Event()
        sync.run(cancel_some())
        print(sorted(ran))
    """
    assert with_few_workers(script) == ["[5, 6, 7, 8, 9]"]


def test_when_given_up_calls_hold_all_threads_the_next_is_refused_and_never_runs() -> None:
    script = """
        import sys
        logging.basicConfig(stream=sys.stdout, format="%(message)s")

        async def hang():
            names = ["a", "b", "b", "b"]
            tasks = [asyncio.create_task(sync.in_worker(begin_and_wait), name=name) for name in names]
            waiting = [asyncio.create_task(outcome(sync.in_worker(ran.append, "waiting"))) for _ in range(2)]
            while len(begun) < 4: await asyncio.sleep(0.001)
            for task in tasks: task.cancel()
            for one in waiting: print(await one)
            print(await outcome(sync.in_worker(ran.append, "later")))
            print(await outcome(sync.shared_in_worker(ran.append, "shared")))
            print(sync.in_background(functools.partial(ran.append, "background")).exception())
            goes_on.set()
            while await outcome(sync.in_worker(ran.append, "again")) is not None:
                await asyncio.sleep(0.001)
            print(ran)

        def begin_and_wait():
            begun.append(1)
            goes_on.wait()

        begun, ran, goes_on = [], [], threading.Event()
        sync.run(hang())
    """
    told = (
        "no thread for a plain function: all 4 worker threads are occupied by functions that were abandoned (timed "
        "out or cancelled) but are still running: b (3), a (1); set timeouts inside these functions, or restart the "
        "process"
    )
    assert with_few_workers(script) == [told] * 4 + [f"background work was not completed: {told}", told, "['again']"]


def test_a_call_is_refused_even_if_an_idle_thread_is_left_that_may_not_run_it() -> None:
    script = """
        sync.IDLE_S = 600.0

        async def cross():
            crosses.set()
            await returns.wait()

        async def hang():
            crossing = asyncio.create_task(sync.in_worker(lambda: sync.run(cross())))
            await crosses.wait()
            tasks = [asyncio.create_task(sync.in_worker(begin_and_wait)) for _ in range(4)]
            while len(begun) < 4: await asyncio.sleep(0.001)  # a fifth thread, because one waits for the bridge
            returns.set()
            await crossing
            for task in tasks: task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            print("all 4 worker threads are occupied" in await outcome(sync.in_worker(ran.append, "later")), ran)
            goes_on.set()

        def begin_and_wait():
            begun.append(1)
            goes_on.wait()

        begun, ran, goes_on = [], [], threading.Event()
        crosses, returns = asyncio.Event(), asyncio.Event()
        sync.run(hang())
    """
    assert with_few_workers(script) == ["True []"]


def test_given_up_calls_take_no_thread_from_others_up_to_a_bound() -> None:
    script = """
        sync.MAX_ABANDONED = 3

        async def hang(count):
            begun = [threading.Event() for _ in range(count)]
            tasks = [asyncio.create_task(left(wait_on, one), name=f"hang {n}") for n, one in enumerate(begun)]
            while not all(one.is_set() for one in begun): await asyncio.sleep(0.001)
            for task in tasks: task.cancel()
            return await asyncio.gather(*tasks)

        async def left(*work):
            try:
                await sync.in_worker(*work)
            except asyncio.CancelledError as error:
                return sync.is_abandoned(error)

        def wait_on(begun):
            begun.set()
            goes_on.wait()

        async def four_at_once():
            barrier = threading.Barrier(4)
            await asyncio.gather(*(sync.in_worker(barrier.wait, 60) for _ in range(4)))
            return "four at once"

        goes_on = threading.Event()
        print(sync.run(hang(3)))
        print(sorted(sync.abandoned()))
        print(sync.run(four_at_once()))
        goes_on.set()
        while sync.abandoned(): time.sleep(0.001)
        print(sync.run(four_at_once()))
    """
    assert with_few_workers(script) == [
        "[True, True, True]",
        "['hang 0', 'hang 1', 'hang 2']",
        "four at once",
        "four at once",
    ]


def test_a_function_that_never_began_is_not_abandoned() -> None:
    script = """
        async def give_up_one_that_waits():
            held = [asyncio.create_task(sync.in_worker(goes_on.wait)) for _ in range(4)]
            await asyncio.sleep(0)
            waiting = asyncio.create_task(left(print, "ran"))
            await asyncio.sleep(0)
            waiting.cancel()
            is_abandoned = await waiting
            goes_on.set()
            await asyncio.gather(*held)
            return is_abandoned, sync.abandoned()

        async def left(*work):
            try:
                await sync.in_worker(*work)
            except asyncio.CancelledError as error:
                return sync.is_abandoned(error)

        goes_on = threading.Event()
        print(sync.run(give_up_one_that_waits()))
    """
    assert with_few_workers(script) == ["(False, [])"]


def test_idle_threads_end() -> None:
    script = """
        sync.IDLE_S = 0.05

        async def meet():
            await asyncio.gather(*(sync.in_worker(barrier.wait, 20) for _ in range(4)))

        for _ in range(3):
            barrier = threading.Barrier(4)
            sync.run(meet())
            ends = time.monotonic() + 15
            while workers() and time.monotonic() < ends:
                time.sleep(0.01)
            print(workers())
    """
    assert with_few_workers(script) == ["0", "0", "0"]


@pytest.mark.skipif(not hasattr(os, "setuid") or os.getuid() != 0, reason="only root can become a user with a limit")
def test_at_the_machines_limit_of_threads_calls_wait_or_are_refused_and_none_hangs() -> None:
    script = """
        import contextlib, os, resource
        sync.MAX_WORKERS = 256

        async def answer():
            return 42

        async def many():
            return await asyncio.gather(*(sync.in_worker(time.sleep, 0.001) for _ in range(300)))

        async def hold(count):
            held = [asyncio.create_task(sync.in_worker(begin_and_wait)) for _ in range(count)]
            while len(begun) < workers(): await asyncio.sleep(0.001)
            for task in held: task.cancel()
            for _ in range(count):  # until all threads that there may be are held by what was given up
                with contextlib.suppress(TimeoutError):
                    told = await outcome(asyncio.wait_for(sync.in_worker(goes_on.wait), 0.05))
                    if isinstance(told, str):
                        return told

        def begin_and_wait():
            begun.append(1)
            goes_on.wait()

        def nested(depth):
            return sync.run(sync.in_worker(nested, depth - 1)) if depth else 0

        sync.run(answer())  # the loop has its thread
        os.setuid(54321)  # a user with no other process
        resource.setrlimit(resource.RLIMIT_NPROC, (12, 12))
        print(len(sync.run(many())), workers() <= 12)
        print(sync.run(outcome(sync.in_worker(nested, 50))))
        begun, goes_on = [], threading.Event()
        sync.run(hold(50))
        print(sync.run(outcome(sync.in_worker(len, "x"))))
        goes_on.set()
        while sync.run(outcome(sync.in_worker(len, "x"))) != 1: time.sleep(0.001)
        print("again")
    """
    finished, nested, held, again = with_few_workers(script)
    assert finished == "300 True"
    for told in (nested, held):
        assert told.startswith("no thread for a plain function: the system cannot start another thread (")
        assert "ulimit -u" in told
    assert again == "again"


def test_a_thread_that_waits_for_work_keeps_nothing_of_its_last_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "IDLE_S", 600.0)  # its end would let go of everything

    class Held:
        def work(self) -> int:
            return 1

    held = Held()
    gone = threading.Event()
    weakref.finalize(held, gone.set)
    assert asyncio.run(sync.in_worker(held.work)) == 1
    del held
    assert gone.wait(30)  # the thread lets go of it after the result has arrived


def test_only_a_function_whose_caller_has_left_is_abandoned() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(30)

    async def main() -> tuple[list[str], list[str]]:
        task = asyncio.create_task(sync.in_worker(work), name="the caller of this test")
        while not begun.is_set():
            await asyncio.sleep(0)
        before = sync.abandoned()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return before, sync.abandoned()

    try:
        before, after = asyncio.run(main())
    finally:
        may_end.set()
    assert ("the caller of this test" in before, "the caller of this test" in after) == (False, True)


def test_callers_share_a_function_however_its_arguments_are_ordered() -> None:
    calls: list[tuple[int, int]] = []
    may_end = threading.Event()

    def load(*, a: int, b: int) -> int:
        calls.append((a, b))
        may_end.wait(30)
        return a - b

    async def main() -> list[int]:
        both = [
            asyncio.create_task(sync.shared_in_worker(load, **options))
            for options in ({"a": 3, "b": 1}, {"b": 1, "a": 3})
        ]
        other = asyncio.create_task(sync.shared_in_worker(load, a=1, b=3))
        while len(calls) < 2:
            await asyncio.sleep(0)
        may_end.set()
        return await asyncio.gather(*both, other)

    assert asyncio.run(main()) == [2, 2, -2]
    assert sorted(calls) == [(1, 3), (3, 1)]
