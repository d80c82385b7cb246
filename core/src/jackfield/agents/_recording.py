"""Where the runs of an agent with a store are handed to the library that records them."""

from __future__ import annotations

from jackfield._lazy import needed
from jackfield.agents._run import Recording
from jackfield.models._base import BaseChatModel
from jackfield.runs._records import Store
from jackfield.settings import Settings


def recording_in(
    store: Store, agent: str, model: BaseChatModel | None, settings: Settings, *, goes_on: bool
) -> Recording:
    """How the runs of an agent are recorded.

    Raises:
        ConfigError: The library for that is not installed; stores ask for it.
    """
    key = getattr(getattr(model, "config", None), "api_key", None)
    secrets = [key.get_secret_value()] if key else []
    made = needed("jackfield_records", "Recording", "an agent with a store needs the package jackfield-records")
    recording: Recording = made.of_agent(store, agent, settings, secrets, goes_on=goes_on)
    return recording
