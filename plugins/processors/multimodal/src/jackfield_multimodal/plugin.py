"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer the multimodal processor.

    It runs after language detection, so that notes are in the language of the conversation, and before tokens are
    counted.
    """
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
