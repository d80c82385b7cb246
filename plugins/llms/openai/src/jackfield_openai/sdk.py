"""Determine the URL and headers that the openai SDK would use, from its settings and environment variables.

Requests and answers bypass the SDK's pydantic models, which cost more than everything else combined. Merely loading
the SDK takes longer than the rest of a first answer. This module therefore implements the rules that all SDK versions
share, and loads the SDK only for cases it does not cover: a URL that the SDK would normalise, or one of the SDK's own
environment variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from jackfield.config import LLMConfig
from jackfield_http import NO_KEY, Server
from jackfield_http.addresses import is_plain
from jackfield_http.backend import HTTPBackend
from jackfield_http.keys import KeyRule
from jackfield_http.server import ServerT

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
ORGANIZATION_VARIABLE = "OPENAI_ORG_ID"
PROJECT_VARIABLE = "OPENAI_PROJECT_ID"
OPENAI_HOST = "api.openai.com"
OPENAI_URL = f"https://{OPENAI_HOST}/v1"
KEY_RULE = KeyRule(KEY_VARIABLE, (OPENAI_HOST, f".{OPENAI_HOST}"), URL_VARIABLE)

# The last four do not affect requests: other programs read them, or the SDK uses them for another purpose.
_KNOWN_VARIABLES = frozenset(
    {
        KEY_VARIABLE,
        URL_VARIABLE,
        ORGANIZATION_VARIABLE,
        PROJECT_VARIABLE,
        "OPENAI_MODEL",
        "OPENAI_API_BASE",
        "OPENAI_API_TYPE",
        "OPENAI_API_VERSION",
    }
)


def is_openai(url: str) -> bool:
    """Return True if a URL points to OpenAI itself."""
    return urlsplit(url).hostname == OPENAI_HOST


def openai_table(config: LLMConfig) -> str:
    """Return the name of OpenAI's model table if the configuration points to OpenAI itself, otherwise ''."""
    url = config.server_url or os.environ.get(URL_VARIABLE)
    return "openai" if not url or is_openai(url) else ""


class Account(Protocol):
    """The settings that determine which account is billed."""

    @property
    def organization(self) -> str | None:
        """The configured organization."""

    @property
    def project(self) -> str | None:
        """The configured project."""


def sdk_server(path: str, backend: HTTPBackend[ServerT], account: Account) -> Server:
    """Return the server that the SDK would use, with its headers in lower case.

    Args:
        path: The endpoint's path, appended to the base URL.
        backend: The backend. If it has no API key, servers other than OpenAI's receive a placeholder.
        account: The account to bill.

    Raises:
        MissingSecretError: OpenAI requires an API key, and there is none.
        ConfigError: The configured API key must not be sent to OpenAI.
    """
    configured = backend.configured_url()
    url = configured or OPENAI_URL
    key = backend.find_key(configured, needed=is_openai(url))
    sent_key = key.value or NO_KEY
    if _sdk_knows_better(url):
        base_url, headers = _ask_sdk(url, sent_key, account)
    else:
        base_url = url
        organization, project = _find_payers(account)
        headers = _usual_headers(sent_key, organization, project)
    if key.withheld:  # the account in the environment belongs to the key there
        headers = _usual_headers(sent_key, account.organization, account.project)
    return Server(base_url + path, headers, key)


def _sdk_knows_better(url: str) -> bool:
    others = {name for name in os.environ if name.startswith("OPENAI_")} - _KNOWN_VARIABLES
    return bool(others) or not is_plain(url)


def _find_payers(account: Account) -> tuple[str | None, str | None]:
    """Return the organization and project from the configuration or the environment."""
    organization, project = account.organization, account.project
    return (
        os.environ.get(ORGANIZATION_VARIABLE) if organization is None else organization,
        os.environ.get(PROJECT_VARIABLE) if project is None else project,
    )


def _usual_headers(key: str, organization: str | None, project: str | None) -> dict[str, str]:
    payers = {"openai-organization": organization, "openai-project": project}
    return {
        "accept": "application/json",
        "authorization": f"Bearer {key}",
        **{name: value for name, value in payers.items() if value is not None},
    }


def _ask_sdk(url: str, key: str, account: Account) -> tuple[str, dict[str, str]]:
    """Return the SDK's base URL and headers."""
    import httpx2
    import openai

    client = openai.AsyncOpenAI(
        api_key=key,
        base_url=url,
        organization=account.organization,
        project=account.project,
        max_retries=0,
        # This client sends nothing; without it, the SDK would create one and load certificates.
        http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False),
    )
    headers = _of_a_request({**client.default_headers, **client.auth_headers}, client.user_agent)
    return str(client.base_url).rstrip("/"), headers


def _of_a_request(headers: Mapping[str, object], user_agent: str) -> dict[str, str]:
    """Return the headers without the SDK's sentinels for omitted headers and its description of the machine.

    The description reveals the operating system, architecture and Python version, which no server needs.
    """
    lowered = {name.lower(): value for name, value in headers.items() if isinstance(value, str)}
    return {
        name: value
        for name, value in lowered.items()
        if not name.startswith("x-stainless-") and (name, value) != ("user-agent", user_agent)
    }
