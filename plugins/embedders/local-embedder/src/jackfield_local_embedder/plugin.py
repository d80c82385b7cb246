"""Plugin hooks for the local embedder and reranker."""

from __future__ import annotations

from jackfield.plugins import EmbedderSpec, SearcherSpec, hook


@hook.embedders
def embedders() -> list[EmbedderSpec]:
    """Provide the local embedder."""
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


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide the searcher that reranks another searcher's hits."""
    return [
        SearcherSpec(
            name="local_rerank",
            target="jackfield_local_embedder.rerank:LocalRerank",
            config="jackfield_local_embedder.config:LocalRerankConfig",
            summary="Reranks another searcher's hits with a cross-encoder, an ONNX file that runs in this process",
            secrets=("HF_TOKEN",),
            effects=frozenset({"network", "files"}),
            network=("huggingface.co",),
            requires=("searcher.keyword_search",),
        )
    ]
