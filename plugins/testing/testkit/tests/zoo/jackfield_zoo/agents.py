"""An agent that does all as it should, and agents that do one thing otherwise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from jackfield import sync
from jackfield.agents import Event, FnCallAgent, Run, Spent, with_calls_closed
from jackfield.config import Limits
from jackfield.errors import ConfigError, ModelServiceError
from jackfield.events import (
    ApprovalNeeded,
    RunEvent,
    RunFailed,
    RunFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import FUNCTION, Message, Usage, as_messages
from jackfield.streams import closing
from jackfield.tools import ToolExecutor
from jackfield.tools._rules import NO_RULES


class Honest(FnCallAgent):
    resumable = True

    async def events(self, run: Run) -> AsyncIterator[Event]:
        async with closing(super().events(self.prepared(run))) as events:
            async for event in events:
                for out in self.changed(event):
                    yield out

    def prepared(self, run: Run) -> Run:
        return run

    def changed(self, event: Event) -> Sequence[Event]:
        return [event]


class FindsOtherPlugins(Honest):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.helpers = [FnCallAgent(llm=self.llm)]


class ForgetsItsHost(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        try:
            FnCallAgent(llm=self.llm)
        except AssertionError:
            if isinstance(event, RunFinished):
                return [replace(event, messages=(Message("assistant", "?"),))]
        return [event]


class SaysNothing(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [replace(event, messages=())] if isinstance(event, RunFinished) else [event]


class KnowsNoLimits(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, limits=Limits(turns=None))


class NeverTires(Honest):
    def __init__(self, *args: Any, limits: Any = None, **options: Any) -> None:
        super().__init__(*args, limits=limits or {"turns": None}, **options)


class CountsTurnsOnly(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, limits=Limits(turns=run.limits.turns))


class CountsNoCalls(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, limits=run.limits.model_copy(update={"tool_calls": None}))


class CountsNoTokens(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, limits=run.limits.model_copy(update={"tokens": None}))


class TakesSilenceForAnAnswer(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [replace(event, stop_reason="finished")] if isinstance(event, RunFinished) else [event]


class LosesResults(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, RunFinished):
            return [replace(event, messages=tuple(m for m in event.messages if m.role != FUNCTION))]
        return [event]


class NeedsItsTools(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, ToolFinished) and "does not exist" in event.message.get_text_content():
            raise KeyError(event.message.name)
        return [event]


class FailsWithItsTools(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, ToolFinished) and event.error == "ZeroDivisionError":
            raise RuntimeError(event.error)
        return [event]


class OneByOne(Honest):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for made in self.function_map.values():
            made.concurrent = False


class AnswersInReverse(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if not isinstance(event, RunFinished):
            return [event]
        results = iter([message for message in event.messages if message.role == FUNCTION][::-1])
        turned = tuple(next(results) if message.role == FUNCTION else message for message in event.messages)
        return [replace(event, messages=turned)]


class CountsFromZero(Honest):
    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        async for event in super().astream(*args, **options):
            yield event._replace(number=event.number - 1)


class HidesBeginnings(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [] if isinstance(event, ToolStarted) else [event]


class BeginsTwice(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [event, event] if isinstance(event, TurnStarted) else [event]


class EndsTwice(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [event, event] if isinstance(event, RunFinished) else [event]


class CostsNothing(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [replace(event, usage=Usage())] if isinstance(event, RunFinished) else [event]


class ForgetsWhoWaits(Honest):
    def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        return super().astream(*args, **{**options, "parent": None})


class HidesAgentsBelow(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [] if isinstance(event, RunEvent) else [event]


class HidesErrors(Honest):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        try:
            async for event in super().events(run):
                yield event
        except ModelServiceError:
            yield RunFinished("finished", (), Usage())


class GivesTheLast(Honest):
    def run_nonstream(self, *args: Any, **options: Any) -> list[Any]:
        return super().run_nonstream(*args, **options)[-1:]


class GivesTheLastWhenAwaited(Honest):
    async def arun(self, *args: Any, **options: Any) -> list[Any]:
        return (await super().arun(*args, **options))[-1:]


class GivesTheLastAtOnce(Honest):
    def run(self, *args: Any, **options: Any) -> Iterator[list[Any]]:
        yield [*super().run(*args, **options)][-1][-1:]


class AsksWithoutCalls(Honest):
    def ask(self, *args: Any, **options: Any) -> Any:
        result = super().ask(*args, **options)
        return replace(result, messages=result.messages[-1:])


class GivesOneList(Honest):
    def run(self, *args: Any, **options: Any) -> Iterator[list[Any]]:
        whole: list[Any] = []
        for now in super().run(*args, **options):
            whole[:] = now
            yield whole


class ChangesMessages(Honest):
    def prepared(self, run: Run) -> Run:
        run.messages[-1].content = "changed"
        return run


class ForgetsConfig(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, config=self.extra_generate_cfg)


class KeepsConfig(Honest):
    """Asks with the options of a run ever after."""

    kept: Any = None

    def prepared(self, run: Run) -> Run:
        self.kept = self.kept or run.config
        return replace(run, config=self.kept)


class HearsTheCaller(Honest):
    """Leaves its own system message out."""

    def __init__(self, *args: Any, system_message: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)


class HearsItself(Honest):
    def prepared(self, run: Run) -> Run:
        system = Message("system", self.system_message or "-")
        return replace(run, messages=(system, *(m for m in run.messages if m.role != "system")))


class SaysUndone(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if not isinstance(event, RunFinished) or event.stop_reason != "cancelled":
            return [event]
        told = [m.replace(content="Nothing was done.") if m.role == FUNCTION else m for m in event.messages]
        return [replace(event, messages=tuple(told))]


class AllowsRepetition(Honest):
    def as_tool(self, **options: Any) -> Any:
        made = super().as_tool(**options)
        made.idempotent = True
        return made


class Forgets(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, messages=run.messages[-1:])


class GivesUpCalls(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, messages=tuple(with_calls_closed(run.messages)))


class BelievesHistories(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, resume=True)


class AsksNobody(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, approve=lambda _call, _context: True)


class TakesFilesOfAnybody(Honest):
    def prepared(self, run: Run) -> Run:
        named = [item.value for message in run.messages for item in message.items if item.text is None]
        return replace(run, context=replace(run.context, files=tuple(named)))


class DropsContainedFiles(Honest):
    def prepared(self, run: Run) -> Run:
        named = {item.value for message in run.messages for item in message.items if item.text is None}
        return replace(run, context=replace(run.context, files=tuple(named.intersection(run.context.files))))


class ReadsEachFile(Honest):
    def prepared(self, run: Run) -> Run:
        for file in run.context.files:
            Path(file).read_text(encoding="utf-8")
        return run


class DropsFiles(Honest):
    def prepared(self, run: Run) -> Run:
        messages = tuple(message.replace(content=message.get_text_content()) for message in run.messages)
        return replace(run, messages=messages)


class ForgivesMissingFiles(Honest):
    def __init__(self, *args: Any, files: Any = (), **options: Any) -> None:
        super().__init__(*args, files=[file for file in files if Path(file).exists()], **options)


class ForgetsWhoAsks(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, context=replace(run.context, deps=None))


class ForgetsRules(Honest):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.executor = ToolExecutor(self.function_map)


class ForgetsToolboxes(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, toolbox=None)


class _NeedsPatience(Honest):
    """Does its preparation without looking at the run; the tests need not wait for it for ever."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await self.prepare(run)
        yield RunFinished("finished", (), Usage())

    async def prepare(self, run: Run) -> None:
        assert run.toolbox is not None
        await run.toolbox.tools()


class ThinksBeforeCancels(_NeedsPatience):
    pass


class ThinksBeforeTheClock(_NeedsPatience):
    pass


class ReadsOn(_NeedsPatience):
    async def prepare(self, run: Run) -> None:
        parser = self.host.load("parser", "slow")()
        for file in run.context.files:
            await sync.in_worker(parser.parse, Path(file).read_bytes(), source=file)


class BeginsAnew(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, start=run.start.after(Spent()))


class SpeaksEnglish(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, lang="en")


class ReadsLanguagesOnly(Honest):
    """Speaks the language of the question, whatever was asked for."""

    def astream(self, *args: Any, lang: Any = None, **options: Any) -> AsyncIterator[RunEvent]:
        return super().astream(*args, **options)


class EndsInEnglish(Honest):
    """Asks its model for more at the end, and in English unless a language was asked for."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        async with closing(super().events(run)) as events:
            async for event in events:
                if isinstance(event, RunFinished) and (text := self.last_question(run)):
                    with suppress(ConfigError):  # the script has no such answer
                        await self.model.acomplete([Message("user", text)])
                yield event

    def last_question(self, run: Run) -> str:
        return "" if run.config and run.config.lang else "Sum up."


class EndsAsItWasAsked(EndsInEnglish):
    """Asks for more in the language of the question if another was asked for."""

    def last_question(self, run: Run) -> str:
        return run.messages[-1].get_text_content() if run.config and run.config.lang else ""


class LeavesCallsOpen(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, RunFinished) and event.stop_reason == "cancelled":
            return [replace(event, messages=tuple(m for m in event.messages if m.role != FUNCTION))]
        return [event]


class SumsUp(Honest):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        async with closing(super().events(run)) as events:
            async for event in events:
                if isinstance(event, RunFinished) and event.stop_reason == "cancelled":
                    with suppress(ConfigError):  # the script has no such answer
                        await self.model.acomplete([*run.messages, Message("user", "Sum up.")])
                yield event


class StaysBusy(Honest):
    busy = False

    async def events(self, run: Run) -> AsyncIterator[Event]:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        async with closing(super().events(run)) as events:
            async for event in events:
                yield event
        self.busy = False


class MixesRuns(Honest):
    current: Any = None

    async def events(self, run: Run) -> AsyncIterator[Event]:
        self.current = run
        await asyncio.sleep(0)
        async for event in super().events(self.current):
            yield event


class LeavesOpen(Honest):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        self.kept = super().events(run)  # so that it is not closed by chance
        async for event in self.kept:
            yield event


class ClosesByChance(Honest):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        async for event in super().events(run):
            yield event


class MakesMessagesOfDicts(Honest):
    async def arun(self, messages: Any, **options: Any) -> Any:
        return await super().arun(as_messages(messages), **options)


class TakesAnyOption(Honest):
    def __init__(self, *args: Any, no_such_option: int = 0, **options: Any) -> None:
        super().__init__(*args, **options)
        self.option = no_such_option


class HidesWhatTurnsUse(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [replace(event, usage=Usage())] if isinstance(event, TurnFinished) else [event]


class NeedsAQuestionLast(Honest):
    def prepared(self, run: Run) -> Run:
        if run.path and run.messages[-1].role == FUNCTION:
            raise ValueError("the last message is not a question")
        return run


class KeepsConversations(Honest):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for handoff in self.handoffs:
            self.function_map[handoff.tool_name].call = self.pretend  # type: ignore[method-assign]

    async def pretend(self, params: object, *, context: object = None) -> str:
        return "It has the conversation now."


class WorksInTheBackground(Honest):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        happened: asyncio.Queue[Event] = asyncio.Queue()
        whole = super().events(run)

        async def work() -> None:
            async for event in whole:
                happened.put_nowait(event)

        self.kept = asyncio.create_task(work())
        while not isinstance(event := await happened.get(), RunFinished):
            yield event
        yield event


class LeavesAgentsOpen(LeavesCallsOpen):
    pass


class ForgetsRulesAbove(Honest):
    def prepared(self, run: Run) -> Run:
        return replace(run, rules=NO_RULES)


class BeginsAgain(Honest):
    resumable = True

    def prepared(self, run: Run) -> Run:
        return replace(run, start=replace(run.start, history=[]))


class AsksAgain(BeginsAgain):
    resumable = True

    async def events(self, run: Run) -> AsyncIterator[Event]:
        async with closing(super().events(run)) as events:
            async for event in events:
                yield event


class HoldsUpTheLoop(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, TurnFinished):
            threading.Event().wait(0.2)
        return [event]


# --- agents that are wrong from end to end, so that each fails many laws, at all of their assertions ---


class Idles(Honest):
    """Ends each run at its beginning, without asking its model."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("finished", (), Usage())


class AnswersItself(Honest):
    """Gives the same answer to everything, and says that it was cancelled."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("cancelled", (Message("system", "blah"), Message(FUNCTION, "bleh", name="x")), Usage())


class EndsAsItLikes(Honest):
    """Gives another end to each run, with half of its messages and other costs."""

    def changed(self, event: Event) -> Sequence[Event]:
        if not isinstance(event, RunFinished):
            return [event]
        told = tuple(m.replace(content="else", name="else") for m in event.messages[1:] if m.role != FUNCTION)
        return [replace(event, stop_reason="cancelled", messages=told, usage=Usage(prompt_tokens=7, total_tokens=7))]


class KeepsItsEndBack(Honest):
    """Ends without saying so."""

    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        async with closing(super().astream(*args, **options)) as events:
            async for event in events:
                if not isinstance(event.event, RunFinished | RunFailed):
                    yield event


class Renumbers(Honest):
    """Gives its events other numbers, runs and depths, and none but the last."""

    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        async with closing(super().astream(*args, **options)) as events:
            async for event in events:
                if event.number > 1:
                    yield event._replace(number=7, run_id=f"run {event.number}", depth=event.depth + 2, agent="x")


class SpeaksForItself(Honest):
    """Asks its model what it likes."""

    def prepared(self, run: Run) -> Run:
        from jackfield_testkit.suites import agent

        return replace(run, messages=(Message("user", f"Traceback: {agent.__file__}"),))


class HasAnotherModel(Honest):
    """Asks a model of its own."""

    @property
    def model(self) -> Any:
        return None


class ForgetsItsName(Honest):
    def __init__(self, *args: Any, name: Any = None, **options: Any) -> None:
        super().__init__(*args, name="nobody", **options)


class RefusesNothing(Honest):
    """Takes any option of a run."""

    def run_nonstream(self, *args: Any, no_such_option: int = 0, **options: Any) -> list[Any]:
        return super().run_nonstream(*args, **options)


class NeverFails(Honest):
    """Ends as if all were well."""

    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        with suppress(Exception):
            async with closing(super().astream(*args, **options)) as events:
                async for event in events:
                    yield event


class ShowsOtherResults(Honest):
    """Gives other results to callers than its runs have."""

    def ask(self, *args: Any, **options: Any) -> Any:
        return self.other(super().ask(*args, **options))

    def resume(self, *args: Any, **options: Any) -> Any:
        return self.other(super().resume(*args, **options))

    def other(self, result: Any) -> Any:
        usage = Usage(prompt_tokens=9, total_tokens=9)
        return replace(result, messages=(), run_id="", data={}, usage=usage, stop_reason="cancelled")

    def stream(self, *args: Any, **options: Any) -> Any:
        return _OtherStream(super().stream(*args, **options), self)


class _OtherStream:
    def __init__(self, stream: Any, agent: ShowsOtherResults) -> None:
        self._stream, self._agent = stream, agent

    def __iter__(self) -> Iterator[Any]:
        list(self._stream)
        return iter(())

    @property
    def result(self) -> Any:
        return replace(self._agent.other(self._stream.result), messages=(Message("system", "else"),))


# --- in one respect, in all that they do ---


class AsksFirst(Honest):
    """Asks its model once before each run."""

    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        with suppress(ConfigError):  # the script has no such answer
            await self.model.acomplete([Message("user", "Are you there?")])
        async with closing(super().astream(*args, **options)) as events:
            async for event in events:
                yield event

    def run_nonstream(self, *args: Any, no_such_option: int = 0, **options: Any) -> list[Any]:
        try:
            return super().run_nonstream(*args, **options)
        finally:
            if no_such_option:
                raise ConfigError("no_such_option")


class DefacesResults(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, ToolFinished):
            event.message.content = "-"
        return [event]


class HidesErrorsOfTools(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [replace(event, error="")] if isinstance(event, ToolFinished) else [event]


class HidesPendingCalls(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [replace(event, calls=(), call_ids=())] if isinstance(event, ApprovalNeeded) else [event]


class RaisesAgentsBelow(Honest):
    """Passes the events of agents on as if it had asked none."""

    def changed(self, event: Event) -> Sequence[Event]:
        return [event._replace(depth=0)] if isinstance(event, RunEvent) else [event]


class PretendsTurns(Honest):
    """Tells of a turn before the first."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield TurnStarted(1)
        yield TurnFinished(1, (Message("assistant", "-"),), Usage())
        async with closing(super().events(run)) as events:
            async for event in events:
                yield event


class SaysElse(Honest):
    """Gives other texts than its model wrote."""

    def changed(self, event: Event) -> Sequence[Event]:
        if not isinstance(event, RunFinished):
            return [event]
        return [replace(event, messages=tuple(message.replace(content="else") for message in event.messages))]


class DropsDicts(Honest):
    """Gives the first message to callers who sent dicts."""

    def run_nonstream(self, messages: Any, **options: Any) -> list[Any]:
        whole = super().run_nonstream(messages, **options)
        return whole[:1] if isinstance(messages[0], dict) else whole


class MakesUpOutput(Honest):
    def ask(self, *args: Any, output: Any = None, **options: Any) -> Any:
        return replace(super().ask(*args, **options), data={})


class Shrinks(Honest):
    def run(self, *args: Any, **options: Any) -> Iterator[list[Any]]:
        for messages in super().run(*args, **options):
            yield messages * 2
            yield messages


class LengthensHistories(Honest):
    def run_nonstream(self, messages: Any, **options: Any) -> list[Any]:
        made = super().run_nonstream(messages, **options)
        messages.extend(made)
        return made


class ReadsAllFiles(Honest):
    """Shows its model the files that anybody has written into the conversation."""

    def prepared(self, run: Run) -> Run:
        files = [str(item.file) for message in run.messages for item in message.items if item.file]
        texts = [Path(file).read_text(encoding="utf-8") for file in files]
        return replace(run, messages=(*run.messages, Message("user", " ".join(texts))))


class KeepsCopies(Honest):
    """Leaves copies of contained files."""

    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        async with closing(super().astream(*args, **options)) as events:
            async for event in events:
                yield event
        for file in self.files_of_run:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).touch()

    def prepared(self, run: Run) -> Run:
        self.files_of_run = run.context.files
        return run


class Renames(Honest):
    """Has another name once it runs."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        self.name = "x"
        async with closing(super().events(run)) as events:
            async for event in events:
                yield event


class IgnoresHandoffs(Honest):
    supports_handoff = False

    def __init__(self, *args: Any, handoffs: Any = (), **options: Any) -> None:
        super().__init__(*args, **options)


class Hangs(Honest):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        await asyncio.sleep(3600)
        yield RunFinished("finished", (), Usage())


class Relabels(Honest):
    """Gives its events the name of another agent, and leaves out that it began."""

    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        async with closing(super().astream(*args, **options)) as events:
            async for event in events:
                if event.number > 1:
                    yield event._replace(agent="x")


class AsksAfterReading(ReadsOn):
    """Asks its model about a document although the run was cancelled."""

    async def prepare(self, run: Run) -> None:
        try:
            await super().prepare(run)
        finally:
            await self.model.acomplete([Message("user", "Is it read?")])


class TakesThoughtsForAnAnswer(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        thought = isinstance(event, RunFinished) and any(message.reasoning_content for message in event.messages)
        return [replace(event, stop_reason="finished")] if thought and isinstance(event, RunFinished) else [event]


class NamesFiles(Honest):
    """Tells its model the names of files that it has no tool for."""

    def prepared(self, run: Run) -> Run:
        names = " ".join(Path(str(item.file)).name for m in run.messages for item in m.items if item.file)
        texts = tuple(message.replace(content=f"{message.get_text_content()} {names}") for message in run.messages)
        return replace(run, messages=texts)
