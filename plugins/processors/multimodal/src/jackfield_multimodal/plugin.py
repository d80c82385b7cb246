"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Notes about files and media, in the language of the conversation and before anything is counted."""
    return [
        ProcessorSpec(
            name="multimodal",
            target="jackfield_multimodal.processor:Multimodal",
            config="jackfield_multimodal.config:MultimodalConfig",
            summary="Sends attached files as text, and names media for models that cannot see them and for tools.",
            effects=frozenset({"files", "network"}),
            phase="input",
            after=("language",),
        )
    ]
