"""Where the runs of an agent with a store are handed to the library that records them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jackfield.agents._run import Recording
from jackfield.errors import ConfigError
from jackfield.models._base import BaseChatModel
from jackfield.runs._records import Store
from jackfield.settings import Settings

_LIBRARY = "jackfield_records"


def recording_in(
    store: Store, agent: str, model: BaseChatModel | None, settings: Settings, *, goes_on: bool
) -> Recording:
    """How the runs of an agent are recorded.

    Raises:
        ConfigError: The library for that is not installed; stores ask for it.
    """
    try:
        library: Any = import_module(_LIBRARY)
    except ModuleNotFoundError as error:
        if error.name != _LIBRARY:
            raise
        raise ConfigError(
            "an agent with a store needs the package jackfield-records: pip install jackfield-records"
        ) from None
    key = getattr(getattr(model, "config", None), "api_key", None)
    hide = library.Hide(settings, *([key.get_secret_value()] if key else ()))
    recording: Recording = library.Recording(store=store, hide=hide, agent=agent, goes_on=goes_on)
    return recording
