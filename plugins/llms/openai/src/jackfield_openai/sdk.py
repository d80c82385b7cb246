"""Where the openai SDK would send a request, and with which headers, its environment variables included.

Requests and answers do not go through the SDK's pydantic models, which cost more than everything else together. To load
the SDK alone takes longer than all the rest of a first answer. So what every version of it does alike is written here,
and it is asked where it knows better: about an address that it would write otherwise, or a variable of its own.
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

# The last four change nothing in a request: others read them, or the SDK does for something else.
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
    """Whether a URL is at OpenAI itself."""
    return urlsplit(url).hostname == OPENAI_HOST


def openai_table(config: LLMConfig) -> str:
    """Return the name of the table with OpenAI's models if a configuration leads to OpenAI itself, else ''."""
    url = config.server_url or os.environ.get(URL_VARIABLE)
    return "openai" if not url or url.startswith(f"https://{OPENAI_HOST}/") else ""


class Account(Protocol):
    """The settings that decide which account pays."""

    @property
    def organization(self) -> str | None:
        """As configured."""

    @property
    def project(self) -> str | None:
        """As configured."""


def sdk_server(path: str, backend: HTTPBackend[ServerT], account: Account) -> Server:
    """The server that the SDK would use, with its headers, names in lower case.

    Args:
        path: The endpoint's path, appended to the base URL.
        backend: The backend. If it has no API key, a server other than OpenAI's gets a placeholder.
        account: The account that pays.

    Raises:
        MissingSecretError: There is no API key, and OpenAI needs one.
        ConfigError: The API key that is set must not be sent to OpenAI's address.
    """
    given = backend.configured_url()
    key = backend.find_key(given, needed=given is None or is_openai(given))
    url, sent_key = given or OPENAI_URL, key.value or NO_KEY
    if _sdk_knows_better(url):
        base_url, headers = _by_the_sdk(url, sent_key, account)
    else:
        base_url = url
        organization, project = _payers(account)
        headers = _usual_headers(sent_key, organization, project)
    if key.withheld:  # what belongs to it in the environment stays here, too
        headers = _usual_headers(sent_key, account.organization, account.project)
    return Server(base_url + path, headers, key)


def _sdk_knows_better(url: str) -> bool:
    others = {name for name in os.environ if name.startswith("OPENAI_")} - _KNOWN_VARIABLES
    return bool(others) or not is_plain(url)


def _payers(account: Account) -> tuple[str | None, str | None]:
    """The organization and the project, as configured, else as in the environment."""
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


def _by_the_sdk(url: str, key: str, account: Account) -> tuple[str, dict[str, str]]:
    """The base URL and the headers, by the SDK itself."""
    import httpx2
    import openai

    client = openai.AsyncOpenAI(
        api_key=key,
        base_url=url,
        organization=account.organization,
        project=account.project,
        max_retries=0,
        # It sends nothing; with one of its own, the SDK would load certificates for it.
        http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False),
    )
    headers = _of_a_request({**client.default_headers, **client.auth_headers}, client.user_agent)
    return str(client.base_url).rstrip("/"), headers


def _of_a_request(headers: Mapping[str, object], user_agent: str) -> dict[str, str]:
    """The headers without the SDK's marks for those left out, and without what it says of itself and the machine.

    System, architecture and Python: nobody asked for that.
    """
    lowered = {name.lower(): value for name, value in headers.items() if isinstance(value, str)}
    return {
        name: value
        for name, value in lowered.items()
        if not name.startswith("x-stainless-") and (name, value) != ("user-agent", user_agent)
    }
