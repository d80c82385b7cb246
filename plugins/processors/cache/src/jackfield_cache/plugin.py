"""What this distribution offers."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """The cache, next to the backend, outside of retries."""
    return [
        ProcessorSpec(
            name="cache",
            target="jackfield_cache.processor:Cache",
            config="jackfield_cache.config:CacheConfig",
            summary="Keeps the answers of a model in a file, and gives them again when the same is asked.",
            phase="transport",
            before=("retry",),
            effects=frozenset({"files"}),
        )
    ]
