"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Return the language processor, which comes before all that write texts, and the one for system messages."""
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
