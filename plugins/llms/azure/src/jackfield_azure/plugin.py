"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import LLMSpec, hook


@hook.llms
def llms() -> list[LLMSpec]:
    """Return the `azure` backend."""
    return [
        LLMSpec(
            name="azure",
            target="jackfield_azure.backend:AzureChat",
            config="jackfield_azure.config:AzureConfig",
            summary="OpenAI's models on Azure, by deployment",
            keys=("azure_endpoint",),
            secrets=("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
            effects=frozenset({"network"}),
        )
    ]
