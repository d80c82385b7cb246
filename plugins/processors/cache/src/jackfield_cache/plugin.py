"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer the cache processor, which runs close to the backend but outside retries."""
    return [
        ProcessorSpec(
            name="cache",
            target="jackfield_cache.processor:Cache",
            config="jackfield_cache.config:CacheConfig",
            summary="Keeps a model's answers in a file, and returns them when the same request is made again.",
            phase="transport",
            before=("retry",),
            effects=frozenset({"files"}),
        )
    ]
