"""Plugin hooks for the multilingual embedder."""

from __future__ import annotations

from jackfield.plugins import EmbedderSpec, hook


@hook.embedders
def embedders() -> list[EmbedderSpec]:
    """Provide the multilingual embedder."""
    return [
        EmbedderSpec(
            name="multilingual",
            target="jackfield_multilingual_embedder.embedder:MultilingualEmbedder",
            config="jackfield_multilingual_embedder.config:MultilingualConfig",
            summary="The Universal Sentence Encoder for sixteen languages, whose weights are installed with it",
            included_model="universal-sentence-encoder-multilingual-3",
        )
    ]
