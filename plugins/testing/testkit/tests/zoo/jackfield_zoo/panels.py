"""A conversation that does all as it should, and conversations that do one thing otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from jackfield.agents import Agent, Event, ParentRun, Run, Spent, open_calls, run_as
from jackfield.config import Limits
from jackfield.errors import ConfigError, ModelServiceError
from jackfield.events import HandedOff, RunEvent, RunFailed, RunFinished, TextDelta
from jackfield.messages import ASSISTANT, FUNCTION, USER, Message, Usage, with_system_text
from jackfield.streams import closing


class Panel(Agent):
    """Each member speaks once."""

    def __init__(self, *args: Any, agents: Sequence[Agent] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.check(agents)
        self.agents = tuple(agents)

    def check(self, agents: Sequence[Agent]) -> None:
        if not agents or not all(agent.name for agent in agents) or len({a.name for a in agents}) < len(agents):
            raise ConfigError("a panel needs members with names of their own")

    async def events(self, run: Run) -> AsyncIterator[Event]:
        said: list[Message] = []
        spent, reason, label = run.start.spent, None, "panel"
        for agent in self.speakers(run):
            yield HandedOff(label, agent.name or "")
            label = agent.name or ""
            part = self.part_of(agent, run, said, spent)
            async with closing(agent.events(part)) as events:
                async for event in events:
                    if isinstance(event, RunFinished):
                        end = event
                    else:
                        spent = spent.plus(event)
                        yield event
            said += self.heard(end.messages)
            run = replace(run, resume=False, answers={})
            reason = self.reason_of(end, ParentRun(run, spent))
            if reason is not None:
                break
        yield RunFinished(reason or "finished", tuple(said), self.usage_of(spent.usage))

    def speakers(self, run: Run) -> Sequence[Agent]:
        if not open_calls(run.messages):
            return self.agents
        caller = next(message.name for message in reversed(run.messages) if message.function_call)
        names = [agent.name for agent in self.agents]
        return self.agents[names.index(caller) :]

    def part_of(self, agent: Agent, run: Run, said: Sequence[Message], spent: Any) -> Run:
        seen = [self.seen(agent, message) for message in self.known(run, said)]
        shown = [message for message in seen if message is not None]
        if shown[-1].role == ASSISTANT and not shown[-1].function_call:
            shown.append(Message(USER, "Your turn."))
        return run_as(agent, run, with_system_text(tuple(shown), "", first=True), replace(spent, turns=0))

    def known(self, run: Run, said: Sequence[Message]) -> Sequence[Message]:
        return [*run.messages, *said]

    def seen(self, agent: Agent, message: Message) -> Message | None:
        if message.role != ASSISTANT or message.name == agent.name:
            return message if message.role != FUNCTION or self.is_own(agent, message) else None
        return None if message.function_call else Message(USER, f"{message.name}: {message.get_text_content()}")

    def is_own(self, agent: Agent, message: Message) -> bool:
        return message.name in agent.function_map

    def heard(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages

    def reason_of(self, end: RunFinished, parent: ParentRun) -> Any:
        return end.stop_reason if end.stop_reason != "finished" else parent.reached(0)

    def usage_of(self, usage: Usage) -> Usage:
        return usage


class NamesNobody(Panel):
    def heard(self, messages: Sequence[Message]) -> Sequence[Message]:
        return [message.replace(name=None) for message in messages]


class Deaf(Panel):
    def known(self, run: Run, said: Sequence[Message]) -> Sequence[Message]:
        return run.messages


class CountsNothing(Panel):
    def usage_of(self, usage: Usage) -> Usage:
        return Usage()


class HearsNoHistory(Panel):
    def speakers(self, run: Run) -> Sequence[Agent]:
        if any(message.role == ASSISTANT for message in run.messages):
            raise ValueError("a panel begins with a question")
        return self.agents


class BeginsWithTheFirst(Panel):
    def speakers(self, run: Run) -> Sequence[Agent]:
        return self.agents


class AsksForNothing(Panel):
    def part_of(self, agent: Agent, run: Run, said: Sequence[Message], spent: Any) -> Run:
        part = super().part_of(agent, run, said, spent)
        return replace(part, rules=type(part.rules)())


class LosesTheLastResult(Panel):
    def heard(self, messages: Sequence[Message]) -> Sequence[Message]:
        return [message for message in messages if message.role != FUNCTION]


class ClosesNothing(Panel):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        async for event in super().events(run):
            yield event


class Polite(Panel):
    async def events(self, run: Run) -> AsyncIterator[Event]:
        try:
            async with closing(super().events(run)) as events:
                async for event in events:
                    yield event
        except ModelServiceError:
            yield RunFinished("finished", (), Usage())


class LikesSilence(Panel):
    def reason_of(self, end: RunFinished, parent: ParentRun) -> Any:
        return None if end.stop_reason == "empty_reply" else super().reason_of(end, parent)


class TakesTwins(Panel):
    def check(self, agents: Sequence[Agent]) -> None:
        pass


class ResumesFromTheStart(Panel):
    resumable = True

    async def events(self, run: Run) -> AsyncIterator[Event]:
        async with closing(super().events(replace(run, later_parts=[]))) as events:
            async for event in events:
                yield event


# --- panels that are wrong from end to end, so that each fails many laws, at all of their assertions ---


class Adjourns(Panel):
    """Ends each run at its beginning."""

    async def events(self, run: Run) -> AsyncIterator[Event]:
        yield RunFinished("finished", (), Usage())


class HoldsRunsOfItsOwn(Panel):
    """Gives each event the run of its speaker, and no last one."""

    async def astream(self, *args: Any, **options: Any) -> AsyncIterator[RunEvent]:
        async with closing(super().astream(*args, **options)) as events:
            async for event in events:
                if isinstance(event.event, RunFailed):
                    continue
                hides = isinstance(event.event, TextDelta)
                yield event._replace(run_id=event.agent, event=TextDelta("Hm.") if hides else event.event)
                if isinstance(event.event, RunFinished):
                    yield event


class KeepsTalking(Panel):
    """Knows no limits, and gives its members what no model takes."""

    def part_of(self, agent: Agent, run: Run, said: Sequence[Message], spent: Any) -> Run:
        part = super().part_of(agent, run, said, Spent())
        return replace(part, messages=(*part.messages, Message(ASSISTANT, "Well.")), limits=Limits(turns=None))

    def reason_of(self, end: RunFinished, parent: ParentRun) -> Any:
        return None


class ForgetsItsHistory(Panel):
    def ask(self, *args: Any, **options: Any) -> Any:
        result = super().ask(*args, **options)
        return replace(
            result,
            messages=result.messages[1:],
            history=result.history[1:],
            path=("panel",),
            usage_by_agent={},
            usage=Usage(),
        )
