"""The bridge from async to sync: errors, context, cancelling, and no event lost or waited for in vain."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator

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
@settings(max_examples=15)
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

    for _ in sync.iterate(forever()):
        break
    items = sync.iterate(forever())
    next(items)
    items.close()  # type: ignore[attr-defined]
    opened, closed, opened_again, closed_again = tasks
    assert opened is closed is not None
    assert opened_again is closed_again is not None


def test_a_generator_that_was_never_begun_runs_nothing() -> None:
    begun: list[bool] = []

    async def noting() -> AsyncIterator[int]:
        begun.append(True)
        yield 1

    sync.iterate(noting())
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
    batches.close()  # type: ignore[attr-defined]


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
        with pytest.raises(JackfieldError, match="use the async twin"):
            sync.run(mistake())


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


@pytest.mark.parametrize("error", [KeyError("x"), StopIteration(), SystemExit(3)], ids=repr)
def test_what_a_worker_raises_arrives(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def caught() -> BaseException:
        try:
            await sync.in_worker(fail)
        except BaseException as arrived:
            return arrived
        return AssertionError("nothing was raised")

    arrived = asyncio.run(caught())
    assert arrived is error or (isinstance(arrived, RuntimeError) and "StopIteration" in str(arrived))
