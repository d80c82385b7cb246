"""Call models on Azure over Chat Completions, where each deployment has its own URL and API version."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar
from urllib.parse import quote, urlencode

from jackfield.config import LLMConfig
from jackfield.errors import ConfigError
from jackfield_azure.config import AzureConfig
from jackfield_chat_completions import ChatCompletionsModel, ChatServer, Dialect, ServerProfile
from jackfield_chat_completions.model import PATH
from jackfield_http.addresses import is_plain
from jackfield_http.keys import FoundKey, KeyRule, find_key

KEY_VARIABLE = "AZURE_OPENAI_API_KEY"
TOKEN_VARIABLE = "AZURE_OPENAI_AD_TOKEN"  # noqa: S105 - the name of a variable
ENDPOINT_VARIABLE = "AZURE_OPENAI_ENDPOINT"
HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".openai.azure.us")
KEY_RULE = KeyRule(KEY_VARIABLE, HOSTS, ENDPOINT_VARIABLE)
VERSION_VARIABLE = "OPENAI_API_VERSION"
DEFAULT_VERSION = "2024-06-01"
VERSIONLESS_PATH = "/openai/v1"

# Older versions refuse `stream_options`: github.com/Azure/azure-rest-api-specs, issues 29157 and 30810.
FIRST_VERSION_WITH_USAGE = "2024-09-01"


class AzureChat(ChatCompletionsModel):
    """Chat model deployed on Azure."""

    backend: ClassVar[str] = "azure"
    config_class: ClassVar[type[LLMConfig]] = AzureConfig
    profile: ClassVar[ServerProfile] = ServerProfile(
        key=KEY_VARIABLE,
        dialect=Dialect(send_reasoning=False),
        where="azure_deployment, azure_endpoint and api_version",
        models="openai",
    )
    key_rule: ClassVar[KeyRule] = KEY_RULE
    url_setting: ClassVar[str] = "azure_endpoint"
    config: AzureConfig

    async def alist_models(self) -> list[str]:
        """Refuse, because an API key does not give access to Azure's list of deployments.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(
            "Azure cannot list deployments by API key: look them up in the Azure portal, and use azure:DEPLOYMENT"
        )

    def server(self) -> ChatServer:
        """Return the deployment's URL, built like the SDK's, with the API key or token.

        Raises:
            ConfigError: No endpoint is configured, or both an API key and a token are.
            MissingSecretError: There is neither an API key nor a token.
        """
        endpoint = self.configured_url()
        if endpoint is None:
            raise ConfigError(
                f"backend {self.backend} needs an endpoint: set azure_endpoint or the environment variable "
                f"{ENDPOINT_VARIABLE}, for example to https://NAME.openai.azure.com"
            )
        key, headers = self._credentials(endpoint)
        if endpoint.endswith(VERSIONLESS_PATH):
            return ChatServer(endpoint + PATH, headers, key, self.dialect(self.profile))
        version = self.config.api_version or os.environ.get(VERSION_VARIABLE) or DEFAULT_VERSION
        deployment = self.config.azure_deployment or self.config.model
        dialect = replace(self.profile.dialect, stream_usage=version >= FIRST_VERSION_WITH_USAGE)
        profile = replace(self.profile, dialect=dialect)
        return ChatServer(_deployment_url(endpoint, deployment, version), headers, key, self.dialect(profile))

    def _credentials(self, endpoint: str) -> tuple[FoundKey, Mapping[str, str]]:
        """Return the secret and its header.

        Configured secrets take precedence over the environment, where a token takes precedence over a key.
        """
        if self.config.api_key and self.config.azure_ad_token:
            raise ConfigError("api_key and azure_ad_token are both set, but Azure accepts only one: remove the other")
        token = find_key(
            endpoint,
            replace(KEY_RULE, variable="" if self.config.api_key else TOKEN_VARIABLE),
            configured=self.config.azure_ad_token,
            settings=self.host.settings,
        )
        if token.value:
            return token, {"authorization": f"Bearer {token.value}"}
        key = self.find_key(endpoint)
        if token.withheld and not key.value:
            key = token
        return key, {"api-key": key.or_missing(needed_by=f"backend {self.backend}")}


def _deployment_url(endpoint: str, deployment: str, version: str) -> str:
    """Return a deployment's chat URL. The SDK is loaded only for endpoints that it would normalise."""
    base_url = f"{endpoint}/openai/deployments/{quote(deployment, safe='', errors='replace')}"
    query: Mapping[str, object] = {"api-version": version}
    if not is_plain(base_url):
        base_url, query = _sdk_settings(endpoint, deployment, version)
    return f"{base_url}{PATH}?{urlencode(query)}"


def _sdk_settings(endpoint: str, deployment: str, version: str) -> tuple[str, Mapping[str, str]]:
    """Return the SDK's base URL for the deployment and its default query parameters."""
    import httpx2
    import openai

    client = openai.AsyncAzureOpenAI(
        azure_endpoint=endpoint,
        azure_deployment=quote(deployment, safe="", errors="replace"),
        api_version=version,
        api_key="unused",  # the client requires a key, but sends nothing
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False),
    )
    query = {name: str(value) for name, value in client.default_query.items()}
    return str(client.base_url).rstrip("/"), query
