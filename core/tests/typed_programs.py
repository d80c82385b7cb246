"""Programs with `deps` and tools: type checkers accept all lines but those with a `type: ignore`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from jackfield import BasicAgent, FnCallAgent, RunResult, tool
from jackfield.tools import ToolContext


@dataclass
class User:
    name: str


@tool
def who(context: ToolContext[User]) -> str:
    """Say who asks."""
    assert_type(context.deps, User)
    return context.deps.name


@tool(read_only=True)
def twice(number: int, word: str = "") -> list[str]:
    """Say it twice."""
    return [word] * 2 * number


@tool
async def later(number: int) -> float:
    """Say it later."""
    return float(number)


agent = FnCallAgent[User]([who, twice], llm="offline")


def right() -> None:
    assert_type(agent.ask("Hi", deps=User("Anna")), RunResult[str])
    assert_type(agent.ask("Hi", output=int, deps=User("Anna")), RunResult[int])
    agent.stream("Hi", deps=User("Anna"))
    agent.run_nonstream("Hi", deps=User("Anna"))
    agent.resume("id", deps=User("Anna"))
    BasicAgent(llm="offline").ask("Hi", deps=3)
    assert_type(twice(2, word="a"), list[str])


async def right_in_a_loop() -> None:
    assert_type(await agent.aask("Hi", deps=User("Anna")), RunResult[str])
    assert_type(await later(2), float)


class Own(FnCallAgent[User]):
    pass


def wrong() -> None:
    agent.ask("Hi", deps=3)  # type: ignore[call-overload]
    agent.ask("Hi", output=int, deps="Anna")  # type: ignore[call-overload]
    agent.stream("Hi", deps=3)  # type: ignore[call-overload]
    agent.run_nonstream("Hi", deps=3)  # type: ignore[arg-type]
    agent.resume("id", deps=3)  # type: ignore[arg-type]
    Own().ask("Hi", deps=3)  # type: ignore[call-overload]
    twice("2")  # type: ignore[arg-type]
    twice(2, words="a")  # type: ignore[call-arg]
