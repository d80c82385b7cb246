"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer the system message processor and the language processor, which precedes all others that write text."""
    return [
        ProcessorSpec(
            name="language",
            target="jackfield_system_message.language:Language",
            config="jackfield_system_message.language_config:LanguageConfig",
            summary="Detects the language of a conversation, for texts that are added to it and for answers.",
            phase="input",
            before=("multimodal",),
        ),
        ProcessorSpec(
            name="system_message",
            target="jackfield_system_message.system_message:SystemMessage",
            config="jackfield_system_message.system_message_config:SystemMessageConfig",
            summary="Adds a text, and optionally the date, to the system message of every request.",
            phase="context",
            before=("truncation",),
        ),
    ]
