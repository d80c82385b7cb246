"""Demo of `jackfield web`: an agent with two documents, a tool, and a model that needs no API key."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from jackfield import create_agent, tool
from jackfield.errors import ConfigError, PluginNotFoundError

if TYPE_CHECKING:
    from jackfield.agents import Agent

_DOCUMENTS = ("mill.md", "mill.zh.md")
_SUGGESTIONS = (
    "When is the mill open?",
    "What does a bag of flour cost?",
    "磨坊建于哪一年？",
    'call book_tour {"day": "Sunday", "people": 4}',
)


@tool(needs_approval=True)
def book_tour(day: str, people: int) -> str:
    """Book a guided tour of the mill.

    Args:
        day: The day of the week.
        people: The number of visitors.
    """
    return f"A tour for {people} on {day} is booked. (This is a demonstration: nothing was sent.)"


def make_demo() -> dict[str, Agent]:
    """Create the demo agent, and return it by name.

    Raises:
        ConfigError: A required component is not installed.
    """
    folder = files("jackfield_web") / "demo"
    try:
        agent = create_agent(
            "assistant",
            llm="offline:extractive",
            function_list=[book_tour],
            files=[str(folder / name) for name in _DOCUMENTS],
            name="mill guide",
            suggestions=_SUGGESTIONS,
            description="Quotes two documents about a tide mill; the offline model writes no text of its own.",
        )
    except PluginNotFoundError as error:
        raise ConfigError(
            "the demonstration is not installed. To install it, run: pip install 'jackfield-web[demo]'. "
            "Alternatively, specify an agent, as in: jackfield web agent.yaml"
        ) from error
    return {"mill-guide": agent}
