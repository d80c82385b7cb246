"""What the openai SDK says of where the server is and how one is let in, its environment variables included.

Requests and answers do not go through the SDK's pydantic models, which cost more than everything else together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from jackfield_backend.keys import KeyRule
from jackfield_http import NO_KEY, Server
from jackfield_http.backend import HTTPBackend
from jackfield_http.server import ServerT

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI_HOST = "api.openai.com"
KEY_RULE = KeyRule(KEY_VARIABLE, (OPENAI_HOST, f".{OPENAI_HOST}"), URL_VARIABLE)


def is_openai(url: str) -> bool:
    """Whether a URL is at OpenAI itself."""
    return urlsplit(url).hostname == OPENAI_HOST


class Account(Protocol):
    """The settings that say who pays."""

    @property
    def organization(self) -> str | None:
        """As configured."""

    @property
    def project(self) -> str | None:
        """As configured."""


def sdk_server(path: str, backend: HTTPBackend[ServerT], account: Account) -> Server:
    """The server that the SDK would ask, with its headers, names in lower case.

    Args:
        path: Of the endpoint, behind the base URL.
        backend: Who asks. Where it has no key, a server that is not OpenAI's gets the word for no key.
        account: Who pays.

    Raises:
        MissingSecretError: There is no key, and OpenAI needs it.
        ConfigError: The key that is set is not for OpenAI's address.
    """
    import httpx2
    import openai

    url = backend.given_url()
    key = backend.find_key(url, needed=url is None or is_openai(url))
    client = openai.AsyncOpenAI(
        api_key=key.value or NO_KEY,
        base_url=url,
        organization=account.organization,
        project=account.project,
        max_retries=0,
        # It sends nothing; with one of its own, the SDK would load certificates for it.
        http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False),
    )
    headers = _told({**client.default_headers, **client.auth_headers})
    if key.withheld:  # what belongs to it in the environment stays here, too
        given = {"openai-organization": account.organization, "openai-project": account.project}
        headers = {name: value for name, value in headers.items() if given.get(name, value) is not None}
    return Server(str(client.base_url).rstrip("/") + path, headers, key)


def _told(headers: Mapping[str, object]) -> dict[str, str]:
    """The headers without the SDK's marks for those left out, and without what it says of the machine.

    System, architecture and Python: nobody asked for that.
    """
    lowered = {name.lower(): value for name, value in headers.items() if isinstance(value, str)}
    return {name: value for name, value in lowered.items() if not name.startswith("x-stainless-")}
