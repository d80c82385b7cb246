"""Describe the component of this package."""

from __future__ import annotations

from jackfield.plugins import EmbedderSpec, hook


@hook.embedders
def embedders() -> list[EmbedderSpec]:
    """Return the embedder."""
    return [
        EmbedderSpec(
            name="transformers",
            target="jackfield_local_embedder.embedder:TransformersEmbedder",
            config="jackfield_local_embedder.config:TransformersEmbedderConfig",
            summary="Any sentence-embedding model of Hugging Face, run in this process, from a folder or from the hub",
            secrets=("HF_TOKEN",),
            effects=frozenset({"network", "files"}),
            network=("huggingface.co",),
        )
    ]
