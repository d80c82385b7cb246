"""What this package offers."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Stop words, around all attempts to ask a server, and inside processors that read or keep answers."""
    return [
        ProcessorSpec(
            name="stop_words",
            target="jackfield_stop_words.processor:StopWords",
            config="jackfield_stop_words.config:StopWordsConfig",
            summary="Ends answers at stop words, for servers that ignore them.",
            phase="transport",
            after=("cache",),
            before=("retry",),
        )
    ]
