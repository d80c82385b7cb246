"""Play back models from a cassette, or record them, wherever an agent creates them."""

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
"""Play back; play back and record missing answers; record all answers; call the models without recording."""

_MODES: dict[Mode, TapeMode] = {"replay": "replay", "record": "auto", "rerecord": "record"}
_tape: ContextVar[Cassette | None] = ContextVar("_tape", default=None)


class TapingHost(PluginHost):
    """Plugin host whose models use the open cassette, including those of tools and sub-agents."""

    def load_row(self, row: Row) -> Any:
        """Return a component's class, wrapping models in the open cassette."""
        component = super().load_row(row)
        tape = _tape.get()
        return component if row.kind != "llm" or tape is None else _tape_class(component, tape)


@contextmanager
def use_cassette(path: Path, mode: Mode, names: dict[str, str]) -> Iterator[Cassette | None]:
    """Make all models created in the block play back from a cassette, or record to it.

    Args:
        path: The cassette.
        mode: The mode; `live` neither plays back nor records.
        names: Directories that differ between machines, with the placeholders that replace them.

    Yields:
        The cassette; None for `live`.

    Raises:
        ConfigError: The cassette is missing, and models must not be called.
        CassetteError: The cassette cannot be read, or does not contain a request.
    """
    if mode == "live":
        yield None
        return
    if mode == "replay" and not path.exists():
        raise ConfigError(
            f"no cassette {path}: pass --record to call the model and record its answers, or --live to call it without "
            "recording"
        )
    with _restore_on_error(path), Cassette(path, _MODES[mode], names=names) as tape:
        token = _tape.set(tape)
        try:
            yield tape
        finally:
            _tape.reset(token)


@contextmanager
def _restore_on_error(path: Path) -> Iterator[None]:
    """Undo a failed recording, so that an error such as a missing key is not played back later."""
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
    """Keep an agent's secrets out of the open cassette."""
    tape = _tape.get()
    if tape is not None:
        tape.add_secrets(secrets_in(agent))


def _tape_class(model_class: Any, tape: Cassette) -> type[BaseChatModel]:
    """Return a class whose instances are models wrapped in the cassette."""

    def create(_: type, *arguments: Any, **options: Any) -> BaseChatModel:
        return tape.wrap(model_class(*arguments, **options))

    return type(model_class.__name__, (BaseChatModel,), {"__new__": create})
