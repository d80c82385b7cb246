"""Report a run's events as progress notifications."""

from __future__ import annotations

from mcp.server.session import ServerSession

from jackfield.events import (
    HandedOff,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    TextDelta,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)

_CHARS = 1000


class Progress:
    """Reports the steps of a run to a client that requested progress, numbered from 1.

    Args:
        session: The client's session.
        agent: The agent's name in the service.
    """

    def __init__(self, session: ServerSession, agent: str) -> None:
        self._session, self._agent = session, agent
        self._count = 0
        self._chars = 0

    async def report(self, event: RunEvent) -> None:
        """Report an event if it is a step, or if another 1000 characters have been written."""
        text = self._text_of(event)
        if text:
            self._count += 1
            await self._session.report_progress(self._count, message=text.encode(errors="replace").decode())

    def _text_of(self, event: RunEvent) -> str:
        agent = event.agent if event.depth else self._agent
        match event.event:
            case TurnStarted():
                self._chars = 0
                return f"{agent} thinks"
            case TextDelta(text) | ReasoningDelta(text):
                before, self._chars = self._chars, self._chars + len(text)
                if self._chars // _CHARS > before // _CHARS:
                    return f"{agent} writes"
            case ToolStarted() as started:
                return f"{agent} calls {started.call.name}"
            case ToolProgress() | PreparationProgress() as progress:
                return progress.text
            case RetryScheduled():
                return f"{agent} tries again"
            case HandedOff() as handed_off:
                return f"{handed_off.to} takes over"
            case PluginEvent(data={"note": str(note)}):
                return note
        return ""
