"""The base class of stores whose runs this library records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield.stores import Store

if TYPE_CHECKING:
    from jackfield.runs import AgentLike, Recorder


class RecordingStore(Store):
    """A store that leaves the entries of its records to this library: a subclass only keeps texts."""

    def recorder(self, agent: AgentLike) -> Recorder:
        """Return what records the runs of an agent, without the secrets of the agent and of all that it uses."""
        from jackfield_records.recording import recorder_of

        return recorder_of(agent, self)
