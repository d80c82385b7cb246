"""What this distribution offers."""

from __future__ import annotations

from jackfield.plugins import LLMSpec, hook


@hook.llms
def llms() -> list[LLMSpec]:
    """The backend `offline` with its one model."""
    return [
        LLMSpec(
            name="offline",
            target="jackfield_offline.backend:OfflineChatModel",
            summary="Quotes the documents it is given and calls the tools it is told to; no key, no network.",
            models=("extractive",),
        )
    ]
