"""The components of this package. Its three chat backends differ only in what they assume about unknown models."""

from __future__ import annotations

from jackfield.plugins import EmbedderSpec, LLMSpec, SearcherSpec, TokenizerSpec, hook

_CONFIG = "jackfield_dashscope.config:DashScopeConfig"
_HOSTS = (
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
    "dashscope-us.aliyuncs.com",
    "*.dashscope.aliyuncs.com",
    "*.maas.aliyuncs.com",
)


@hook.llms
def llms() -> list[LLMSpec]:
    """Return the chat backends, named as in Qwen-Agent, and the image backend."""
    return [
        LLMSpec(
            name="qwen_dashscope",
            target="jackfield_dashscope.backend:QwenChat",
            config=_CONFIG,
            summary="Qwen and other models at DashScope, over its own protocol",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
            names=("qwen*", "qwq-*"),
        ),
        LLMSpec(
            name="qwenvl_dashscope",
            target="jackfield_dashscope.backend:QwenVLChat",
            config=_CONFIG,
            summary="The same, for models that take images and video",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
            names=("qwen*-vl*", "qvq-*"),
        ),
        LLMSpec(
            name="qwenaudio_dashscope",
            target="jackfield_dashscope.backend:QwenAudioChat",
            config=_CONFIG,
            summary="The same, for models that take audio",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
            names=("qwen*-audio*",),
        ),
        LLMSpec(
            name="dashscope_images",
            target="jackfield_dashscope.images:DashScopeImages",
            config="jackfield_dashscope.config:DashScopeImagesConfig",
            summary="Images from DashScope's models (Wan, Qwen-Image)",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
            names=("wan*-t2i*", "qwen-image*"),
        ),
    ]


@hook.embedders
def embedders() -> list[EmbedderSpec]:
    """Return the embedder."""
    return [
        EmbedderSpec(
            name="dashscope",
            target="jackfield_dashscope.embedder:DashScopeEmbedder",
            config="jackfield_dashscope.config:EmbedderConfig",
            summary="Embeds texts with DashScope's text-embedding models",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
        )
    ]


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Return the searcher that reranks another searcher's hits."""
    return [
        SearcherSpec(
            name="dashscope_rerank",
            target="jackfield_dashscope.rerank:DashScopeRerank",
            config="jackfield_dashscope.config:RerankConfig",
            summary="Reranks another searcher's hits with a model at DashScope, which gets the query and the chunks",
            secrets=("DASHSCOPE_API_KEY",),
            effects=frozenset({"network"}),
            network=_HOSTS,
            requires=("searcher.keyword_search",),
        )
    ]


@hook.tokenizers
def tokenizers() -> list[TokenizerSpec]:
    """Return the tokenizer, which uses the SDK's vocabulary."""
    return [
        TokenizerSpec(
            name="qwen",
            target="jackfield_dashscope.tokenizer:QwenTokenizer",
            summary="Counts tokens as Qwen 1 to 3 do, without network",
        )
    ]
