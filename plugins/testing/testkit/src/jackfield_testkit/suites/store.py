"""Contract tests for stores."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from jackfield.agents import FnCallAgent
from jackfield.errors import ModelRequestError, RunBusyError, RunNotFoundError, StoreError, StoreUnavailableError
from jackfield.plugins import StoreSpec
from jackfield.request import ChatRequest
from jackfield.stores import RUNNING, Signal, Store, StoredRun, load_store
from jackfield.testing import ScriptedModel, answer, calls
from jackfield.tools import tool
from jackfield_testkit.effects import undeclared, watching
from jackfield_testkit.installed import plain_host
from jackfield_testkit.loopwatch import check_loop
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.given_secrets import HOW_TO_STATE, places_with, secrets_of_settings, texts_of, unstated
from jackfield_testkit.suites.threads import at_once

T = TypeVar("T")

ODD_TEXTS = ("", "\0", "half \ud83d", "🙂" * 3000, "'; DROP TABLE runs; --", "line\nline\r\n", "%s :name $1 ?")
MANY = 8
SIGNALS = ("one", "", "two 🙂 '\"", "x" * 4000)
CAN_GO_ON = ("approval_needed", "input_needed", RUNNING)


class StoreSuite(Suite):
    """Contract of stores, wherever they store their records.

    ```python
    class TestAcme(StoreSuite):
        component = "jackfield-acme/acme"
    ```

    Each test runs in its own directory. If a store's records outlast the test, override `settings` to give each test a
    different location.

    Attributes:
        component: The store to test, as `distribution/name`, or only the name if it is unique.
        config: The store's settings. Two stores with the same settings share their runs.
        patience_s: The maximum delay of a signal, in seconds.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, Any]] = {}
    patience_s: ClassVar[float] = 60.0

    @pytest.fixture(autouse=True)
    def _in_a_folder_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "HOME"):
            monkeypatch.setenv(name, str(tmp_path))

    @pytest.fixture
    def settings(self) -> Mapping[str, Any]:
        """Return the settings for one test. Override this if `config` is not enough."""
        return self.config

    @pytest.fixture
    def make(self, settings: Mapping[str, Any]) -> Any:
        """Yield a function that opens a store on the test's records, as a separate process would."""
        made: list[Store] = []

        def store(**more: Any) -> Store:
            made.append(load_store({"name": self.component, **settings, **more}, plain_host()))
            return made[-1]

        yield store
        for one in made:
            asyncio.run(one.aclose())

    @pytest.fixture
    def limits(self) -> Mapping[str, Any]:
        """Return settings that limit the store to about five runs of 4,000 characters.

        Override this if the store deletes runs to make room for others.
        """
        return {}

    @pytest.fixture
    def outage(self) -> Callable[[], AbstractContextManager[None]]:
        """Return a function that creates a context in which the store cannot be written, as with a full disk.

        Override this to test that an outage neither loses entries nor leaves runs held. With the test's settings, a
        write should fail within a second.
        """
        pytest.skip("override the fixture `outage` to make the store unusable, for example by locking its files")

    # --- settings ---

    def test_a_secret_that_it_is_given_is_stated_and_shown_nowhere(
        self,
        make: Callable[[], Store],
        settings: Mapping[str, Any],
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        secrets = secrets_of_settings(settings)
        if not secrets:
            pytest.skip("the settings contain no secret")
        caplog.set_level(logging.DEBUG)
        store = make()
        _begun(store, "r", "first")
        texts = {**texts_of(store), "a log": caplog.text, "the terminal": "".join(capfd.readouterr())}
        with pytest.raises(RunNotFoundError) as caught:
            asyncio.run(store.read("no-such-run"))
        texts |= {"a run": repr(asyncio.run(store.read("r"))), "an error": repr(caught.value)}
        assert places_with(secrets, texts, tmp_path) == []
        assert not unstated(store, secrets), HOW_TO_STATE

    # --- records ---

    def test_the_event_loop_is_never_held_up(self, make: Callable[[], Store]) -> None:
        store = make()
        numbers = itertools.count()

        async def keep_and_read() -> None:
            run_id = f"r{next(numbers)}"
            hold = await store.create(StoredRun(run_id=run_id), ["first"])
            await store.append(run_id, hold, ["entry" * 1000] * 50)
            await store.append(run_id, hold, ["last"], state="finished")
            await store.read(run_id)
            await store.runs()

        asyncio.run(keep_and_read())  # imports of the first run do not count
        check_loop(keep_and_read)

    def test_entries_come_back_as_they_were_and_in_their_order(self, make: Callable[[], Store]) -> None:
        store = make()
        entries = [f"entry {number}" for number in range(30)]

        async def keep() -> None:
            hold = await store.create(StoredRun(run_id="r"), entries[:2])
            for entry in entries[2:10]:
                await store.append("r", hold, [entry])
            await store.append("r", hold, entries[10:])

        asyncio.run(keep())
        run, kept = asyncio.run(store.read("r"))
        assert kept == entries
        assert run.entries == len(entries)

    def test_entries_may_be_any_text(self, make: Callable[[], Store]) -> None:
        store = make()
        _begun(store, "r", *ODD_TEXTS)
        assert asyncio.run(store.read("r"))[1] == list(ODD_TEXTS)

    def test_what_was_appended_is_there_for_others_at_once(self, make: Callable[[], Store]) -> None:
        writer, reader = make(), make()
        hold = _begun(writer, "r", "first")
        assert asyncio.run(reader.read("r"))[1] == ["first"]
        asyncio.run(writer.append("r", hold, ["second"]))
        assert asyncio.run(reader.read("r"))[1] == ["first", "second"]

    def test_a_run_is_listed_with_what_was_said_of_it(self, make: Callable[[], Store]) -> None:
        store = make()
        said = StoredRun(run_id="r", agent="clerk", model="acme:m", session="talk", parent="p", title="What is it? 🙂")
        # Like a fork, which is described by the run that it continues.
        asyncio.run(store.create(replace(said, began=-2.0, changed=-1.0, entries=7), ["first"]))
        [run] = asyncio.run(make().runs())
        assert (run.run_id, run.agent, run.model, run.session, run.parent, run.title) == (
            "r",
            "clerk",
            "acme:m",
            "talk",
            "p",
            "What is it? 🙂",
        )
        assert (run.state, run.is_held, run.entries) == (RUNNING, True, 1)
        assert run == asyncio.run(make().read("r"))[0]
        assert 0 < run.began <= run.changed

    def test_the_newest_run_is_the_first_of_the_list(self, make: Callable[[], Store]) -> None:
        store = make()
        for number, session in enumerate(("even", "odd", "even", "odd", "even")):
            _begun(store, f"r{number}", session=session)

        def listed(**wanted: Any) -> list[str]:
            return [run.run_id for run in asyncio.run(store.runs(**wanted))]

        assert listed() == ["r4", "r3", "r2", "r1", "r0"]
        assert (listed(limit=2), listed(session="even"), listed(session="none")) == (
            ["r4", "r3"],
            ["r4", "r2", "r0"],
            [],
        )

    def test_a_list_has_the_newest_100_runs_unless_it_is_asked_for_more(self, make: Callable[[], Store]) -> None:
        store = make()
        ids = [f"r{number}" for number in range(101)]
        for run_id in ids:
            asyncio.run(store.create(StoredRun(run_id=run_id, agent="a"), ["{}"]))
        listed = [[run.run_id for run in asyncio.run(runs)] for runs in (store.runs(), store.runs(limit=1000))]
        assert listed == [ids[:0:-1], ids[::-1]]

    def test_runs_are_listed_by_their_owner_and_state(self, make: Callable[[], Store]) -> None:
        store = make()
        for run_id, owner, session in (("r1", "ada", "s"), ("r2", "bob", "s"), ("r3", "ada", "t"), ("r4", "", "s")):
            hold = asyncio.run(store.create(StoredRun(run_id=run_id, owner=owner, session=session), ["first"]))
            if run_id != "r3":
                asyncio.run(store.append(run_id, hold, [], state="finished"))

        def listed(**wanted: Any) -> list[str]:
            return [run.run_id for run in asyncio.run(make().runs(**wanted))]

        assert asyncio.run(store.read("r2"))[0].owner == "bob"
        assert (listed(owner="ada"), listed(owner=""), listed(owner="eve")) == (["r3", "r1"], ["r4"], [])
        assert (listed(state=RUNNING), listed(state="finished")) == (["r3"], ["r4", "r2", "r1"])
        assert listed(owner="ada", session="s", state="finished", limit=1) == ["r1"]
        assert listed(owner="ada", session="s", state=RUNNING) == []

    def test_entries_are_read_from_any_place_on(self, make: Callable[[], Store]) -> None:
        store, entries = make(), [f"entry {number}" for number in range(5)]
        hold = _begun(store, "r", *entries[:1])
        asyncio.run(store.append("r", hold, entries[1:3]))
        asyncio.run(store.append("r", hold, entries[3:], state="finished"))
        for after in range(7):
            run, rest = asyncio.run(make().read("r", after=after))
            assert (rest, run.entries) == (entries[after:], 5)

    def test_a_signal_reaches_every_other_process_that_listens(self, make: Callable[[], Store]) -> None:
        sender = make()
        if type(sender).send is Store.send:
            pytest.skip("the store does not send signals")
        _begun(sender, "r", "first")

        async def exchange() -> list[list[Signal]]:
            await sender.send("r", "sent before any listener")
            listeners = [make().listen() for _ in range(2)]
            async with asyncio.timeout(self.patience_s):
                assert [await anext(listener) for listener in listeners] == [Signal(), Signal()]
                for text in (*SIGNALS, "end"):
                    await sender.send("r", text)
                return [await _signals_until(listener, "end") for listener in listeners]

        for signals in asyncio.run(exchange()):
            assert signals == [Signal("r", text) for text in SIGNALS]

    def test_a_store_that_reports_writes_does_so_after_each_of_another_process(self, make: Callable[[], Store]) -> None:
        reader, writer = make(), make()
        if not reader.reports_writes:
            pytest.skip("the store does not report writes")

        async def exchange() -> None:
            signals = reader.listen()
            async with asyncio.timeout(self.patience_s):
                assert await anext(signals) == Signal()
                hold = await writer.create(StoredRun(run_id="r"), ["first"])
                assert await anext(signals) == Signal()
                await writer.append("r", hold, ["second"])
                assert await anext(signals) == Signal()
                await writer.append("r", hold, [], state="finished")
                assert await anext(signals) == Signal()

        asyncio.run(exchange())

    def test_an_id_is_given_once(self, make: Callable[[], Store]) -> None:
        store = make()
        _begun(store, "r", "first")
        with pytest.raises(StoreError):
            _begun(store, "r", "another")
        assert asyncio.run(store.read("r"))[1] == ["first"]

    def test_a_run_that_there_is_not_is_an_error_of_its_own(self, make: Callable[[], Store]) -> None:
        store = make()
        for ask in (store.read, store.hold, store.delete):
            with pytest.raises(RunNotFoundError):
                asyncio.run(_asked(ask, "nothing"))

    def test_a_run_that_is_deleted_is_gone_with_its_entries(self, make: Callable[[], Store]) -> None:
        store = make()
        for run_id in ("r", "other"):
            hold = _begun(store, run_id, f"entry of {run_id}")
            asyncio.run(store.append(run_id, hold, [], state="finished"))
        asyncio.run(store.delete("r"))
        assert [run.run_id for run in asyncio.run(store.runs())] == ["other"]
        with pytest.raises(RunNotFoundError):
            asyncio.run(store.read("r"))
        _begun(store, "r", "new")
        assert asyncio.run(store.read("r"))[1] == ["new"]
        assert asyncio.run(store.read("other"))[1] == ["entry of other"]

    def test_a_run_of_a_conversation_is_whole_without_the_runs_before_it(self, make: Callable[[], Store]) -> None:
        store = make()
        said, firsts = "", {}
        for number in range(5):  # as in a chat, where each run starts with all earlier messages
            said += f"{number}: {'äh, ' * 300}"
            firsts[f"r{number}"] = f"[{said}]"
            hold = _begun(store, f"r{number}", firsts[f"r{number}"], session="talk")
            asyncio.run(store.append(f"r{number}", hold, [f"end {number}"], state="finished"))
        for gone in ("r1", "r0", "r4"):
            asyncio.run(store.delete(gone))
            del firsts[gone]
            for run_id, first in firsts.items():
                assert asyncio.run(make().read(run_id))[1] == [first, f"end {run_id[1:]}"]

    def test_a_run_that_can_go_on_never_makes_room(self, make: Callable[..., Store], limits: Mapping[str, Any]) -> None:
        first = make(**limits)
        for state in CAN_GO_ON:
            hold = _begun(first, state, "x" * 4000)
            asyncio.run(first.append(state, hold, ["question"], state=state))
            asyncio.run(first.release(state, hold))  # as after an interrupted process
        for number in range(20):
            store = make(**limits)
            hold = _begun(store, f"r{number}", "x" * 4000)
            asyncio.run(store.append(f"r{number}", hold, ["end"], state="finished"))
        kept = {run.run_id for run in asyncio.run(first.runs())}
        assert kept >= {*CAN_GO_ON}
        assert not limits or len(kept) < 20, "`limits` must make the store delete some of 23 runs"
        for state in CAN_GO_ON:
            run, entries = asyncio.run(make(**limits).read(state))
            assert (run.state, [*map(len, entries)]) == (state, [4000, 8])

    # --- holds ---

    def test_a_run_is_held_by_whoever_began_it(self, make: Callable[[], Store]) -> None:
        store, other = make(), make()
        _begun(store, "r", "first")
        for one in (store, other):
            with pytest.raises(RunBusyError):
                asyncio.run(one.hold("r"))
            with pytest.raises(RunBusyError):
                asyncio.run(one.delete("r"))
        assert asyncio.run(other.read("r"))[0].is_held

    @pytest.mark.parametrize("state", ["finished", "approval_needed", "failed"])
    def test_a_run_that_has_ended_is_free_and_has_its_state(self, state: str, make: Callable[[], Store]) -> None:
        store, other = make(), make()
        hold = _begun(store, "r", "first")
        asyncio.run(store.append("r", hold, ["last"], state=state))
        run, entries = asyncio.run(other.read("r"))
        assert (run.state, run.is_held, entries) == (state, False, ["first", "last"])
        assert asyncio.run(other.hold("r")) > hold
        assert asyncio.run(store.read("r"))[0].is_held

    def test_taking_hold_of_a_run_leaves_its_record_as_it_is(self, make: Callable[[], Store]) -> None:
        store, other = make(), make()
        for state in ("finished", "approval_needed"):
            hold = _begun(store, state, "first")
            asyncio.run(store.append(state, hold, ["last"], state=state))
            late = asyncio.run(other.hold(state))
            asyncio.run(other.release(state, late))
            run, entries = asyncio.run(store.read(state))
            assert (run.state, run.is_held, entries) == (state, False, ["first", "last"]), (
                "the end must be written once"
            )
            again = asyncio.run(other.hold(state))
            asyncio.run(other.append(state, again, ["goes on"]))
            ended, (run, entries) = run, asyncio.run(store.read(state))
            assert (run.state, entries) == (RUNNING, ["first", "last", "goes on"])
            assert run.changed >= ended.changed >= run.began == ended.began

    def test_a_run_that_was_released_is_free_and_keeps_its_record(self, make: Callable[[], Store]) -> None:
        store, other = make(), make()
        hold, kept = _begun(store, "r", "first"), _begun(store, "other")
        asyncio.run(store.release("r", hold))
        asyncio.run(store.release("r", hold))  # it may have ended already
        run, entries = asyncio.run(other.read("r"))
        assert (run.state, run.is_held, entries) == (RUNNING, False, ["first"])
        assert run in asyncio.run(other.runs(state=RUNNING)), "agents recover interrupted runs from this list"
        with pytest.raises(RunBusyError):
            asyncio.run(store.append("r", hold, ["late"]))
        new = asyncio.run(other.hold("r"))
        assert new > hold
        asyncio.run(store.release("r", hold))  # late, for a hold that has ended
        asyncio.run(other.append("r", new, ["second"]))
        assert asyncio.run(store.read("r"))[1] == ["first", "second"]
        assert asyncio.run(other.read("other"))[0].is_held, "a release must end a single hold"
        asyncio.run(store.append("other", kept, []))

    def test_a_late_release_leaves_the_next_hold_of_the_same_store(self, make: Callable[[], Store]) -> None:
        store = make()
        old = _begun(store, "r", "first")
        asyncio.run(store.append("r", old, [], state="finished"))
        new = asyncio.run(store.hold("r"))
        asyncio.run(store.release("r", old))
        assert asyncio.run(make().read("r"))[0].is_held
        asyncio.run(store.append("r", new, ["second"]))

    def test_an_append_of_nothing_confirms_the_hold(self, make: Callable[[], Store]) -> None:
        store, other = make(), make()
        hold = _begun(store, "r", "first")
        asyncio.run(store.append("r", hold, []))
        asyncio.run(store.release("r", hold))
        with pytest.raises(RunBusyError):
            asyncio.run(store.append("r", hold, []))
        new = asyncio.run(other.hold("r"))
        with pytest.raises(RunBusyError):
            asyncio.run(store.append("r", hold, []))
        asyncio.run(other.append("r", new, []))
        assert asyncio.run(store.read("r"))[1] == ["first"]

    def test_what_came_with_an_end_stays_where_it_was_when_the_run_goes_on(self, make: Callable[[], Store]) -> None:
        store, said = make(), ["first"]
        hold = _begun(store, "r", *said)
        for ends in (["last"], list(ODD_TEXTS), [""], ["large " * 2000, "small"], ["two\nlines\r\n", "\n"], []):
            asyncio.run(store.append("r", hold, ends, state="finished"))
            hold = asyncio.run(make().hold("r")) if not ends else asyncio.run(store.hold("r"))
            said += ends
            if ends:
                asyncio.run(store.append("r", hold, ["goes on"]))
                said.append("goes on")
            run, entries = asyncio.run(make().read("r"))
            assert (entries, run.entries) == (said, len(said))

    def test_who_has_lost_a_run_changes_nothing(self, make: Callable[[], Store]) -> None:
        store, other = make(), make()
        old = _begun(store, "r", "first")
        asyncio.run(store.append("r", old, [], state="failed"))
        new = asyncio.run(other.hold("r"))
        asyncio.run(other.append("r", new, []))
        for state in (RUNNING, "finished"):
            with pytest.raises(RunBusyError):
                asyncio.run(store.append("r", old, ["late"], state=state))
        run, entries = asyncio.run(other.read("r"))
        assert (run.state, run.is_held, entries) == (RUNNING, True, ["first"])
        asyncio.run(other.append("r", new, ["second"], state="finished"))
        assert asyncio.run(store.read("r"))[1] == ["first", "second"]

    def test_a_store_that_is_closed_holds_nothing(self, make: Callable[[], Store]) -> None:
        store, other = make(), make()
        hold = _begun(store, "r", "first")
        asyncio.run(store.aclose())
        run, _ = asyncio.run(other.read("r"))
        assert (run.state, run.is_held) == (RUNNING, False)
        with pytest.raises(StoreError):
            asyncio.run(store.append("r", hold, ["late"]))
        assert asyncio.run(other.hold("r")) > hold
        with pytest.raises(StoreError):
            asyncio.run(store.append("r", hold, ["later"]))
        assert asyncio.run(other.read("r"))[1] == ["first"]

    def test_of_many_that_want_a_run_one_gets_it(self, make: Callable[[], Store]) -> None:
        store = make()
        hold = _begun(store, "r", "first")
        asyncio.run(store.append("r", hold, [], state="failed"))
        came = at_once(MANY, lambda _: asyncio.run(make().hold("r")))
        assert sum(isinstance(one, int) for one in came) == 1
        assert [one for one in came if not isinstance(one, int | RunBusyError)] == []

    def test_of_many_tasks_that_want_a_run_one_gets_it(self, make: Callable[[], Store]) -> None:
        store = make()
        hold = _begun(store, "r", "first")
        for state in ("failed", "approval_needed", "finished"):
            asyncio.run(store.append("r", hold, [], state=state))

            async def want() -> list[int | BaseException]:
                return await asyncio.gather(*(store.hold("r") for _ in range(MANY)), return_exceptions=True)

            came = asyncio.run(want())
            assert [one for one in came if not isinstance(one, int | RunBusyError)] == []
            [hold] = [one for one in came if isinstance(one, int)]
            asyncio.run(store.append("r", hold, []))

    # --- outages ---

    def test_an_outage_is_said_to_be_one(
        self, make: Callable[[], Store], outage: Callable[[], AbstractContextManager[None]]
    ) -> None:
        store = make()
        hold = _begun(store, "r", "first")
        with outage(), pytest.raises(StoreUnavailableError, match=r"\w"):
            asyncio.run(store.append("r", hold, ["second"]))
        asyncio.run(store.append("r", hold, ["second"]))
        assert asyncio.run(make().read("r"))[1] == ["first", "second"], "a repeated write must be stored once"
        with outage(), pytest.raises(StoreUnavailableError):
            asyncio.run(store.append("r", hold, ["last"], state="finished"))
        asyncio.run(store.append("r", hold, ["last"], state="finished"))
        run, entries = asyncio.run(make().read("r"))
        assert (run.state, run.is_held, entries) == ("finished", False, ["first", "second", "last"])

    def test_a_run_that_ends_in_an_outage_is_free_while_its_process_lives(
        self, make: Callable[[], Store], outage: Callable[[], AbstractContextManager[None]]
    ) -> None:
        store, other = make(), make()
        asyncio.run(other.runs())
        hold, kept = _begun(store, "r", "first"), _begun(store, "other")
        with outage():
            with pytest.raises(StoreUnavailableError):
                asyncio.run(store.append("r", hold, ["last"], state="failed"))
            asyncio.run(store.release("r", hold))
        assert not asyncio.run(other.read("r"))[0].is_held
        assert asyncio.run(other.hold("r")) > hold
        asyncio.run(store.append("other", kept, ["second"]))
        with pytest.raises(RunBusyError):
            asyncio.run(other.hold("other"))

    def test_a_run_waits_for_its_store_and_acts_once(
        self, make: Callable[[], Store], outage: Callable[[], AbstractContextManager[None]]
    ) -> None:
        store, stack = make(), ExitStack()
        append = store.append
        done: list[str] = []
        failed: list[int] = []

        async def counted(run_id: str, hold: int, entries: Sequence[str], *, state: str = RUNNING) -> None:
            try:
                await append(run_id, hold, entries, state=state)
            except StoreUnavailableError:
                failed.append(len(done))
                if len(failed) == 2:
                    stack.close()
                raise

        @tool
        def pay() -> str:
            """Pay."""
            done.append("paid")
            return "paid"

        def asks(request: ChatRequest) -> Any:
            if request.messages[-1].role == "function":
                return answer("It is paid.")
            stack.enter_context(outage())
            return calls(("pay", {}))

        store.append = counted  # type: ignore[method-assign]
        result = FnCallAgent([pay], ScriptedModel(asks), store=store).ask("Pay.")
        assert (result.text, done, failed) == ("It is paid.", ["paid"], [0, 0]), "no call may be made during an outage"
        run, _ = asyncio.run(make().read(result.run_id))
        assert (run.state, run.is_held) == ("finished", False)

    # --- many at once ---

    def test_runs_at_once_are_apart(self, make: Callable[[], Store]) -> None:
        store = make()

        async def keep(number: int) -> None:
            hold = await store.create(StoredRun(run_id=f"r{number}"), [f"{number}.0"])
            for step in range(1, 6):
                await store.append(f"r{number}", hold, [f"{number}.{step}"])
            await store.append(f"r{number}", hold, [], state="finished")

        async def of_one_loop() -> None:
            await asyncio.gather(*map(keep, range(MANY)))

        asyncio.run(of_one_loop())
        assert at_once(MANY, lambda place: asyncio.run(keep(MANY + place))) == [None] * MANY
        for number in range(2 * MANY):
            assert asyncio.run(make().read(f"r{number}"))[1] == [f"{number}.{step}" for step in range(6)]

    # --- with an agent ---

    def test_a_run_that_waits_goes_on_with_another_store_object(self, make: Callable[[], Store]) -> None:
        done: list[str] = []

        @tool(needs_approval=True)
        def send(text: str) -> str:
            """Send a text."""
            done.append(text)
            return "sent"

        script = [calls(("send", {"text": "hello"})), answer("It is sent.")]
        paused = FnCallAgent([send], ScriptedModel(script[:1]), store=make()).ask("Say hello.")
        assert (paused.stop_reason, done) == ("approval_needed", [])
        agent = FnCallAgent([send], ScriptedModel(script[1:]), store=make())
        result = agent.resume(paused.run_id, approvals=dict.fromkeys(paused.waiting, True))
        assert (result.text, done) == ("It is sent.", ["hello"])

    # --- searching ---

    @pytest.fixture
    def search(self, make: Callable[[], Store]) -> Callable[..., list[str]]:
        """Record four runs, one of which failed, and return a function that searches them and returns titles."""
        store = make()
        if type(store).search is Store.search:
            pytest.skip("the store does not support searching runs")
        dialogue = [
            ("How high is the tide?", "It is 3.5 m, says THE TABLE."),
            ("潮汐是什么？", "海水的涨落。"),
            ('Say "quoted" AND not* (this)', "Straße 100%_"),
        ]
        for question, reply in dialogue:
            FnCallAgent(llm=ScriptedModel([answer(reply)]), store=store).ask(question)
        with pytest.raises(ModelRequestError):
            FnCallAgent(llm=ScriptedModel([[ModelRequestError("no", backend="b")]]), store=store).ask(
                "Who is at the tide gauge?"
            )

        def found(text: str, **options: Any) -> list[str]:
            return [run.title for run in asyncio.run(make().search(text, **options))]

        return found

    @pytest.mark.parametrize(
        ("text", "titles"),
        [
            ("tide", ["Who is at the tide gauge?", "How high is the tide?"]),
            ("TIDE the table", ["How high is the tide?"]),
            ("table tide zebra", []),
            ("3.5 m", ["How high is the tide?"]),
            ("潮", ["潮汐是什么？"]),
            ("涨落", ["潮汐是什么？"]),
            ("涨落 潮汐是什么", ["潮汐是什么？"]),
            ('"quoted"', ['Say "quoted" AND not* (this)']),
            ("not* AND", ['Say "quoted" AND not* (this)']),
            ("STRASSE", ['Say "quoted" AND not* (this)']),
            ("0%_", ['Say "quoted" AND not* (this)']),
            ("x% OR tide", []),
            ("RunStarted", []),
            ("zebra\ud83d \0", []),
            (" \0 ", []),
            ("", []),
        ],
    )
    def test_a_search_finds_the_runs_with_all_of_its_words(
        self, search: Callable[..., list[str]], text: str, titles: list[str]
    ) -> None:
        assert search(text) == titles

    def test_a_search_gives_no_more_than_was_asked_for(self, search: Callable[..., list[str]]) -> None:
        assert search("tide", limit=1) == ["Who is at the tide gauge?"]

    def test_a_search_finds_the_runs_of_one_owner(
        self, search: Callable[..., list[str]], make: Callable[[], Store]
    ) -> None:
        async def copy_for(owner: str) -> None:
            store = make()
            [run] = await store.search("3.5 m")
            _, entries = await store.read(run.run_id)
            copied = StoredRun(run_id=f"of-{owner}", owner=owner, title=f"for {owner}")
            await store.append(copied.run_id, await store.create(copied, entries), [], state="finished")
            await store.aclose()

        asyncio.run(copy_for("ada"))
        assert search("3.5 m") == ["for ada", "How high is the tide?"]
        assert search("3.5 m", owner="ada") == ["for ada"]
        assert search("3.5 m", owner="bob") == []
        assert search("3.5 m", owner="") == ["How high is the tide?"]

    def test_a_run_gets_another_title_also_while_it_runs(self, make: Callable[[], Store]) -> None:
        store = make()
        if type(store).rename is Store.rename:
            pytest.skip("the store does not support renaming runs")

        async def main() -> None:
            hold = await store.create(StoredRun(run_id="a", title="before"), ["{}"])
            await store.create(StoredRun(run_id="b", title="other"), ["{}"])
            await store.rename("a", "after '\U0001f596'")
            await store.append("a", hold, ["{}"], state="finished")
            run, entries = await store.read("a")
            assert (run.title, run.state, len(entries)) == ("after '\U0001f596'", "finished", 2)
            assert (await store.read("b"))[0].title == "other"
            with pytest.raises(RunNotFoundError):
                await store.rename("c", "none")
            await store.aclose()

        asyncio.run(main())

    @pytest.mark.parametrize("text", ODD_TEXTS[1:])
    def test_texts_about_a_run_may_be_any_text(self, text: str, make: Callable[[], Store]) -> None:
        store = make()
        about = StoredRun(run_id="r", agent=text, model=text, session=text, parent=text, owner=text, title=text)
        hold = asyncio.run(store.create(about, ["first"]))
        if type(store).rename is not Store.rename:
            asyncio.run(store.rename("r", f"{text} again"))
        asyncio.run(store.append("r", hold, [], state="finished"))
        found = [store.runs(), store.runs(session=text), store.runs(owner=text)]
        assert [[run.run_id for run in asyncio.run(runs)] for runs in found] == [["r"]] * 3
        if type(store).search is not Store.search:
            assert asyncio.run(store.search("first", owner=text)) == []

    def test_a_run_is_found_as_it_is_now_and_not_after_it_was_deleted(self, make: Callable[[], Store]) -> None:
        store = make()
        if type(store).search is Store.search:
            pytest.skip("the store does not support searching runs")

        def found(text: str) -> list[str]:
            return [run.run_id for run in asyncio.run(store.search(text))]

        question = json.dumps({"event": "RunStarted", "messages": [{"role": "user", "content": "first question"}]})
        reply = {"event": "RunFinished", "messages": [{"role": "assistant", "content": "later answer"}]}
        hold = _begun(store, "r", question)
        assert (found("first"), found("later")) == (["r"], [])
        asyncio.run(store.append("r", hold, [json.dumps(reply)], state="finished"))
        assert (found("first later"), found("first")) == (["r"], ["r"])
        asyncio.run(store.delete("r"))
        assert found("first") == []
        other = json.dumps({"event": "RunStarted", "messages": [{"role": "user", "content": "other"}]})
        _begun(store, "s", other, "another entry, so that there are as many as the deleted run had")
        assert (found("first"), found("other")) == ([], ["s"])

    def test_it_does_what_it_declares_and_nothing_else(self, make: Callable[[], Store]) -> None:
        host = plain_host()
        spec = host.spec_of(host.find("store", self.component), StoreSpec)
        with watching() as effects:
            store = make()
            hold = _begun(store, "r", "first")
            asyncio.run(store.append("r", hold, ["last"], state="finished"))
        assert undeclared(effects, spec.effects) == [], (
            "undeclared effects: add them to `effects` of the descriptor, or remove them"
        )


def _begun(store: Store, run_id: str, *entries: str, session: str = "") -> int:
    return asyncio.run(store.create(StoredRun(run_id=run_id, session=session), list(entries) or ["first"]))


async def _asked(ask: Callable[[str], Coroutine[Any, Any, object]], run_id: str) -> None:
    await ask(run_id)


async def _signals_until(listener: AsyncIterator[Signal], end: str) -> list[Signal]:
    """Return the signals before the given one, without those that only announce a possible change."""
    signals: list[Signal] = []
    async for signal in listener:
        if signal.text == end:
            break
        if signal.run_id:
            signals.append(signal)
    return signals
