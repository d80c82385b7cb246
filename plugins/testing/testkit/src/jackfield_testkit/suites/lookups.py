"""Record the components that an agent kind looks up by name."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from jackfield import FnCallAgent, create_agent
from jackfield.descriptors import required_by
from jackfield.errors import JackfieldError
from jackfield.plugins import ComponentSpec, PluginHost, Row, Settings
from jackfield.testing import ScriptedModel, answer
from jackfield.tools import tool
from jackfield_testkit.installed import plain_host


def lookups_of(agent: Row, folder: Path) -> set[str]:
    """Return the components of other distributions, as `kind.name`, that an agent kind looks up.

    The kind is created and asked without options, with a tool, with a file in `folder`, and with other agents. Options
    that it rejects are skipped.
    """
    (folder / "said.txt").write_text("Marmalade is said twice.", encoding="utf-8")
    others = [
        FnCallAgent(llm=_model(plain_host()), name=name, description=name, host=plain_host()) for name in ("one", "two")
    ]
    options: list[dict[str, Any]] = [
        {},
        {"function_list": [_repeat]},
        {"files": [str(folder / "said.txt")]},
        {"agents": others},
    ]
    rows: list[Row] = []
    for chosen in options:
        host = _recording_host(rows)
        with suppress(JackfieldError, TypeError):  # a kind may forward all options to a class that lacks this one
            create_agent(agent.address, llm=_model(host), host=host, **chosen).ask("What is said twice?")
    return {f"{row.kind}.{row.name}" for row in rows if row.distribution not in (agent.distribution, "jackfield")}


def required_in_turn(names: Iterable[str]) -> set[str]:
    """Return the given components and those that their descriptors require by default, as `kind.name`."""
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            kind, _, address = name.partition(".")
            with suppress(JackfieldError):  # it need not be installed
                spec = plain_host().spec(kind, address, ComponentSpec)
                left += [*spec.requires, *required_by(spec.required_by, {"": True})]
    return found


def _recording_host(rows: list[Row]) -> PluginHost:
    class RecordingHost(PluginHost):  # a separate class, because a host may create other instances of its class
        def find(self, kind: str, address: str) -> Row:
            row = super().find(kind, address)
            rows.append(row)
            return row

    return RecordingHost(Settings())


def _model(host: PluginHost) -> ScriptedModel:
    return ScriptedModel(lambda _: answer("Marmalade."), processors=[], host=host)


@tool(name="repeat", description="Says it twice.")
def _repeat(text: str) -> str:
    return f"{text} {text}"
