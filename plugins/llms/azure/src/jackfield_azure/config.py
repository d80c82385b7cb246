"""Settings of this backend."""

from __future__ import annotations

from pydantic import Field, SecretStr

from jackfield.config import ServerAddress
from jackfield_chat_completions import ChatCompletionsConfig


class AzureConfig(ChatCompletionsConfig):
    """The deployment and its credentials."""

    azure_endpoint: ServerAddress | None = Field(
        default=None,
        description="Like AZURE_OPENAI_ENDPOINT: https://NAME.openai.azure.com; takes precedence over base_url",
    )
    azure_deployment: str | None = Field(
        default=None, min_length=1, description="Name of the deployment; unset: the model's name"
    )
    api_version: str | None = Field(
        default=None, min_length=1, description="Like OPENAI_API_VERSION; default: 2024-06-01"
    )
    azure_ad_token: SecretStr | None = Field(
        default=None,
        description="A Microsoft Entra token, used instead of an API key; better set as AZURE_OPENAI_AD_TOKEN",
    )

    @property
    def server_url(self) -> str | None:
        """The configured endpoint, or the address from the common settings."""
        return self.azure_endpoint or super().server_url
