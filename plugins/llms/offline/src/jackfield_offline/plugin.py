"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import LLMSpec, hook


@hook.llms
def llms() -> list[LLMSpec]:
    """Return the `offline` backend and its only model."""
    return [
        LLMSpec(
            name="offline",
            target="jackfield_offline.backend:OfflineChatModel",
            summary="Quotes the documents it is given and calls the tools you name; no API key, no network.",
            models=("extractive",),
        )
    ]
