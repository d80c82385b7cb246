"""Models that are played back from a cassette, or recorded on one, wherever an agent makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from jackfield.agents import Agent
from jackfield.errors import ConfigError
from jackfield.models import BaseChatModel
from jackfield.plugins import PluginHost, Row
from jackfield.privatefiles import write_private
from jackfield.secrets import secrets_in
from jackfield_testkit.cassette import Cassette
from jackfield_testkit.cassette import Mode as TapeMode

Mode = Literal["replay", "record", "rerecord", "live"]
"""Play back; play back, and ask for what is missing; ask for everything and record it; ask, and record nothing."""

_MODES: dict[Mode, TapeMode] = {"replay": "replay", "record": "auto", "rerecord": "record"}
_tape: ContextVar[Cassette | None] = ContextVar("_tape", default=None)


class TapingHost(PluginHost):
    """A host whose models are those of the cassette that is open: also the models of tools, and of agents in agents."""

    def load_row(self, row: Row) -> Any:
        """Return the class of a component; models play from the cassette that is open."""
        loaded = super().load_row(row)
        tape = _tape.get()
        return loaded if row.kind != "llm" or tape is None else _taped(loaded, tape)


@contextmanager
def taped(path: Path, mode: Mode, names: dict[str, str]) -> Iterator[None]:
    """Have the models that are made here play from a file, or record on it.

    Args:
        path: The file.
        mode: See `Mode`.
        names: Folders that differ from machine to machine, each with what is written in its place.

    Raises:
        ConfigError: There is no such file, and models may not be asked.
        CassetteError: It cannot be read, or does not have what is asked.
    """
    if mode == "live":
        yield
        return
    if mode == "replay" and not path.exists():
        raise ConfigError(
            f"there is no cassette {path}: --record asks the model and keeps its answers there, --live only asks"
        )
    with _unchanged_if_it_fails(path), Cassette(path, _MODES[mode], names=names) as tape:
        token = _tape.set(tape)
        try:
            yield
        finally:
            _tape.reset(token)


@contextmanager
def _unchanged_if_it_fails(path: Path) -> Iterator[None]:
    """Undo a recording that fails: the error of a missing key would be played back ever after."""
    before = path.read_bytes() if path.exists() else None
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink(missing_ok=True)
        elif path.read_bytes() != before:
            write_private(path, before)
        raise


def hide_secrets_of(agent: Agent) -> None:
    """Write none of an agent's secrets on the cassette that is open."""
    tape = _tape.get()
    if tape is not None:
        tape.add_secrets(secrets_in(agent))


def _taped(model_class: Any, tape: Cassette) -> type[BaseChatModel]:
    """A class whose making gives a model on the tape: making one is all that is done with it."""

    def made(_: type, *given: Any, **options: Any) -> BaseChatModel:
        return tape.wrap(model_class(*given, **options))

    return type(model_class.__name__, (BaseChatModel,), {"__new__": made})
