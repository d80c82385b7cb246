"""Show a recorded run as a tree of steps with their time, tokens and cost, in which nested agents are indented."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from jackfield.cli import escape_line, width_of
from jackfield.messages import Usage
from jackfield_terminal.summary import money

_CALL_IN_PLACE = re.compile(r"call (.*) #\d+")
_INDENT = "  "
_LEAST_WIDTH = 24  # minimum width of the steps column
_MOST_WIDTH = 100
_MOST_DETAIL = 500  # characters
_WHITE = re.compile(r"\s+")


@dataclass(slots=True, kw_only=True)
class RunStep:
    """A step of a run: an agent with steps of its own, a model's answer, a tool call, or a note.

    Attributes:
        name: The agent's or tool's name, or the kind of step.
        detail: The text for the rest of the line.
        seconds: The step's duration, or None if not recorded.
        usage: The usage of an answer, or the total for an agent; None for other steps.
        is_cost_known: False if the cost of any answer within the step is unknown or in another currency.
        steps: An agent's steps, in order.
    """

    name: str
    detail: str = ""
    seconds: float | None = None
    usage: Usage | None = None
    is_cost_known: bool = True
    steps: list[RunStep] = field(default_factory=list)


class _AgentSteps:
    """One agent's steps while a record is being read."""

    def __init__(self, name: str) -> None:
        self.step = RunStep(name=name)
        self.arguments: dict[str, str] = {}
        self.nested: dict[str, RunStep] = {}


def tree_of(agent: str, record: Sequence[Mapping[str, Any]]) -> RunStep:
    """Build a tree from a record's entries, with the agent as its root."""
    agents = {0: _AgentSteps(agent)}
    for entry in record:
        number = entry.get("below", 0)
        asked = entry.get("asked")
        if isinstance(asked, dict):
            agents[number] = _begin_nested(agents, asked)
        if number in agents:
            _add(agents[number], entry)
    _sum_up(agents[0].step)
    return agents[0].step


def _begin_nested(agents: Mapping[int, _AgentSteps], asked: Mapping[str, Any]) -> _AgentSteps:
    nested = _AgentSteps(str(asked.get("agent", "")))
    parent = agents.get(asked.get("above", 0))
    if parent is not None:
        parent.step.steps.append(nested.step)
        if call := _CALL_IN_PLACE.search(str(asked.get("place", ""))):
            parent.nested[call[1]] = nested.step
    return nested


def _add(agent: _AgentSteps, entry: Mapping[str, Any]) -> None:
    match entry:
        case {"event": "TurnFinished"}:
            agent.step.steps.append(_answer(agent, entry))
        case {"event": "ToolFinished"}:
            _add_call(agent, entry)
        case {"event": "RunFinished", "stop_reason": reason}:
            agent.step.detail = "" if reason == "finished" else str(reason).replace("_", " ")
        case {"event": "RunFailed", "kind": kind}:
            agent.step.detail = f"failed: {kind} {entry.get('error', '')}".rstrip()
        case {"event": "ApprovalNeeded", "calls": list(calls)}:
            names = [call["name"] if isinstance(call, dict) else str(call) for call in calls]
            agent.step.steps.append(RunStep(name="approval needed", detail=", ".join(names)))
        case {"event": "HandedOff", "to": to}:
            agent.step.steps.append(RunStep(name="hand-off", detail=f"to {to}"))
        case {"event": "Resumed"}:
            agent.step.steps.append(RunStep(name="resumed"))


def _answer(agent: _AgentSteps, entry: Mapping[str, Any]) -> RunStep:
    texts: list[str] = []
    names: list[str] = [str(name) for name in entry.get("calls", ())]  # for a record without content
    for message in entry.get("messages", ()):
        call, content = message.get("function_call"), message.get("content")
        if call:
            agent.arguments[(message.get("extra") or {}).get("function_id", "")] = call.get("arguments", "")
            names.append(call["name"])
        elif isinstance(content, str):
            texts.append(content)
    calls = f"calls {', '.join(names)}" if names else ""
    usage = Usage.model_validate(entry.get("usage") or {})
    return RunStep(
        name=f"answer {entry.get('turn', '')}".rstrip(),
        detail="; ".join(part for part in ("".join(texts).strip(), calls) if part),
        seconds=entry.get("seconds") or None,
        usage=usage,
        is_cost_known=usage.cost is not None,
    )


def _add_call(agent: _AgentSteps, entry: Mapping[str, Any]) -> None:
    call_id, seconds = str(entry.get("call_id", "")), entry.get("seconds")
    error = str(entry.get("error") or "")
    nested = agent.nested.pop(call_id, None)
    if nested is not None:
        nested.seconds = seconds
        nested.detail = nested.detail or error
        return
    name = (entry.get("message") or {}).get("name") or entry.get("name") or "tool"
    detail = f"{error} {agent.arguments.pop(call_id, '')}".strip()
    agent.step.steps.append(RunStep(name=str(name), detail=detail, seconds=seconds))


def _sum_up(step: RunStep) -> None:
    """Set each agent's usage to the total of the answers below it."""
    if step.usage is not None:
        return
    total = Usage()
    for one in step.steps:
        _sum_up(one)
        if one.usage is not None:
            total = _plus(total, one.usage)
            is_added = one.usage.currency in (None, total.currency)
            step.is_cost_known = step.is_cost_known and one.is_cost_known and is_added
    if step.steps and any(one.usage is not None for one in step.steps):
        step.usage = total


def _plus(total: Usage, usage: Usage) -> Usage:
    """Add two usages, including their known costs if the currency is the same."""
    costs = [one.cost for one in (total, usage) if one.cost is not None]
    currency = total.currency or usage.currency
    same = usage.currency in (None, currency)
    return Usage(
        prompt_tokens=total.prompt_tokens + usage.prompt_tokens,
        completion_tokens=total.completion_tokens + usage.completion_tokens,
        cost=sum(costs, Decimal()) if costs and same else total.cost,
        currency=currency,
    )


# --- as text ----------------------------------------------------------------------------------------------------------


def tree_lines(root: RunStep, columns: int) -> list[str]:
    """Format a tree as lines with aligned figures.

    Args:
        root: The tree.
        columns: The terminal width, or 0 for a pipe.
    """
    rows = [("step", "time", "in", "out", "cost"), *_rows(root, 0)]
    shown = 5 if any(row[4] for row in rows[1:]) else 4  # omit the cost column if no cost is known
    rows = [row[:shown] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(1, shown)]
    rest = sum(widths) + 2 * len(widths)
    most = max(width_of(row[0]) for row in rows)
    width = min(most, max(_LEAST_WIDTH, columns - rest) if columns else _MOST_WIDTH)
    return [
        "  ".join(
            [_fit(row[0], width), *(cell.rjust(size) for cell, size in zip(row[1:], widths, strict=True))]
        ).rstrip()
        for row in rows
    ]


def _rows(step: RunStep, depth: int) -> Iterator[tuple[str, ...]]:
    detail = escape_line(_WHITE.sub(" ", step.detail[:_MOST_DETAIL]))
    label = f"{_INDENT * depth}{escape_line(step.name)}{'  ' if detail else ''}{detail}"
    usage = step.usage
    figures = (
        ("", "", "") if usage is None else (f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}", _cost(step))
    )
    yield (label, _time(step.seconds), *figures)
    for one in step.steps:
        yield from _rows(one, depth + 1)


def _cost(step: RunStep) -> str:
    """Format the cost, with a plus sign if part of it is unknown."""
    usage = step.usage
    if usage is None or usage.cost is None:
        return ""
    return f"{money(usage.cost, usage.currency)}{'' if step.is_cost_known else ' +'}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= 100:
        return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _fit(text: str, width: int) -> str:
    """Pad or truncate a text to exactly the width of its column."""
    if width_of(text) > width:
        while text and width_of(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - width_of(text))
