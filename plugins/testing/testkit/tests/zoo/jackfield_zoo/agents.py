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
from jackfield.errors import ModelServiceError
from jackfield.events import RunEvent, RunFinished, ToolFinished, ToolStarted, TurnFinished, TurnStarted
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


class CountsFromZero(Honest):
    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        async for event in super().astream(*args, **options):
            yield replace(event, number=event.number - 1)


class HidesBeginnings(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [] if isinstance(event, ToolStarted) else [event]


class BeginsTwice(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        return [event, event] if isinstance(event, TurnStarted) else [event]


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


class LeavesCallsOpen(Honest):
    def changed(self, event: Event) -> Sequence[Event]:
        if isinstance(event, RunFinished) and event.stop_reason == "cancelled":
            return [replace(event, messages=tuple(m for m in event.messages if m.role != FUNCTION))]
        return [event]


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
            threading.Event().wait(0.06)
        return [event]
