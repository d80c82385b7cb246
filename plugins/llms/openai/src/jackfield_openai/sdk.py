"""What the openai SDK says of where the server is and how one is let in, its environment variables included.

Requests and answers do not go through the SDK's pydantic models, which cost more than everything else together.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from jackfield.config import LLMConfig
from jackfield.plugins.host import PluginHost
from jackfield.tracebacks import LocalsForgotten
from jackfield_backend.keys import FoundKey, KeyRule, find_key
from jackfield_http import NO_KEY, checked_url

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI_HOST = "api.openai.com"
KEY_RULE = KeyRule(KEY_VARIABLE, (OPENAI_HOST, f".{OPENAI_HOST}"), URL_VARIABLE)


def given_url(config: LLMConfig) -> str | None:
    """The base URL that the configuration, else the environment gives; None for OpenAI's.

    Raises:
        ConfigError: It is none.
    """
    with LocalsForgotten():  # one that is refused may have a password in it
        url = config.server_url or os.environ.get(URL_VARIABLE)
        return checked_url(url) if url else None


def key_of(url: str | None, config: LLMConfig, host: PluginHost, backend: str) -> FoundKey:
    """The key: the configured one, else the secret if it may go there, else the word that stands for no key.

    Args:
        url: The base URL; None for OpenAI's.
        config: What may have a key.
        host: Where the secret is looked up.
        backend: Who asks, for errors.

    Raises:
        MissingSecretError: There is none, and OpenAI needs it.
        ConfigError: No header can carry it.
    """
    found = find_key(url, KEY_RULE, configured=config.api_key, settings=host.settings)
    if url is None or is_openai(url):
        found.or_missing(KEY_VARIABLE, needed_by=f"backend {backend}")
    return found if found.value else FoundKey(NO_KEY, found.withheld)


def is_openai(url: str) -> bool:
    """Whether a URL is at OpenAI itself."""
    return urlsplit(url).hostname == OPENAI_HOST


def sdk_settings(
    key: FoundKey, base_url: str | None, *, organization: str | None = None, project: str | None = None
) -> tuple[str, dict[str, str]]:
    """The base URL, without a slash at its end, and the headers that the SDK would use; names in lower case."""
    import httpx2
    import openai

    client = openai.AsyncOpenAI(
        api_key=key.value,
        base_url=base_url,
        organization=organization,
        project=project,
        max_retries=0,
        # It sends nothing; with one of its own, the SDK would load certificates for it.
        http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False),
    )
    headers = {
        name.lower(): value
        for name, value in {**client.default_headers, **client.auth_headers}.items()
        if isinstance(value, str)  # the others are the SDK's marks for headers left out
    }
    # The SDK also describes the machine (system, architecture, Python): nobody asked for that.
    told = {name: value for name, value in headers.items() if not name.startswith("x-stainless-")}
    if key.withheld:  # what belongs to it in the environment stays here, too
        given = {"openai-organization": organization, "openai-project": project}
        told = {name: value for name, value in told.items() if given.get(name, value) is not None}
    return str(client.base_url).rstrip("/"), {**told, "accept-encoding": "identity"}  # what arrives is read as it is
