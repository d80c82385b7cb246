"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import LLMSpec, hook


@hook.llms
def llms() -> list[LLMSpec]:
    """Return the `transformers` backend."""
    return [
        LLMSpec(
            name="transformers",
            target="jackfield_transformers.backend:TransformersChat",
            config="jackfield_transformers.config:TransformersConfig",
            summary="Any chat model of Hugging Face transformers, run in this process, from a folder or from the hub",
            secrets=("HF_TOKEN",),
            effects=frozenset({"network", "files"}),
            network=("huggingface.co",),
            requires=("call_format.nous",),
        )
    ]
