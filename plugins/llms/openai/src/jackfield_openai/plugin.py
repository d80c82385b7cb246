"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import EmbedderSpec, LLMSpec, hook

_TARGET = "jackfield_openai.backend:OpenAIChat"
_CONFIG = "jackfield_openai.config:OpenAIConfig"
_SECRETS = ("OPENAI_API_KEY",)
_SECRETS_OF_SERVERS = ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY")
_EFFECTS = frozenset({"network"})


@hook.llms
def llms() -> list[LLMSpec]:
    """Return the backends. `oai` is Qwen-Agent's name for `openai`."""
    return [
        LLMSpec(
            name="openai",
            target=_TARGET,
            config=_CONFIG,
            summary="OpenAI and any compatible server (vLLM, SGLang, Ollama …), by Chat Completions",
            secrets=_SECRETS_OF_SERVERS,
            effects=_EFFECTS,
        ),
        LLMSpec(
            name="oai",
            target=_TARGET,
            config=_CONFIG,
            summary="The same as openai",
            secrets=_SECRETS_OF_SERVERS,
            effects=_EFFECTS,
        ),
        LLMSpec(
            name="openai_responses",
            target="jackfield_openai.responses.backend:OpenAIResponses",
            config="jackfield_openai.responses.config:ResponsesConfig",
            summary="OpenAI's Responses API: reasoning is kept between turns, and the provider can run tools",
            secrets=_SECRETS,
            effects=_EFFECTS,
        ),
        LLMSpec(
            name="openai_images",
            target="jackfield_openai.images:OpenAIImages",
            config="jackfield_openai.images:OpenAIImagesConfig",
            summary="Images from OpenAI and any server with its images endpoint",
            secrets=_SECRETS,
            effects=_EFFECTS,
        ),
    ]


@hook.embedders
def embedders() -> list[EmbedderSpec]:
    """Return the embedder, which supports the same servers."""
    return [
        EmbedderSpec(
            name="openai",
            target="jackfield_openai.embeddings:OpenAIEmbedder",
            config="jackfield_openai.embeddings:OpenAIEmbedderConfig",
            summary="Embeddings from OpenAI and any compatible server (vLLM, Ollama …)",
            secrets=_SECRETS,
            effects=_EFFECTS,
        )
    ]
