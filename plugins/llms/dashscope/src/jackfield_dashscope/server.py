"""The way to DashScope: the SDK says where the server is, how one is let in and what a request for a stream has.

Nothing of it is set for the whole process: two components with two keys do not meet.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jackfield import sync
from jackfield.errors import ConfigError
from jackfield.settings import Settings
from jackfield.tracebacks import LocalsForgotten
from jackfield_backend.keys import KeyRule, find_key
from jackfield_backend.refusals import Secrets
from jackfield_dashscope.config import DashScopeConfig, Endpoint, ServiceConfig
from jackfield_http import HeaderPairs, HTTPClient, checked_url, header_pairs

KEY_VARIABLE = "DASHSCOPE_API_KEY"
URL_VARIABLE = "DASHSCOPE_HTTP_URL"  # Qwen-Agent's; the SDK's own are the SDK's business
HOSTS = ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com")
KEY_RULE = KeyRule(KEY_VARIABLE, (*HOSTS, ".dashscope.aliyuncs.com", ".maas.aliyuncs.com"), URL_VARIABLE)


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go, and with what.

    Attributes:
        http: The connections.
        base: The URL that paths are put behind.
        key: What lets in.
        headers: What every request has; see `headers_for`.
        paths: Where models are asked for an answer.
        of_a_stream: The parameters and the headers of a request for a stream.
    """

    http: HTTPClient
    base: str
    key: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    paths: Mapping[Endpoint, str]
    of_a_stream: tuple[Mapping[str, Any], Mapping[str, str]]

    def secrets_with(self, extra: Mapping[str, str]) -> Secrets:
        """What a request with these headers sends and no error may show."""
        return Secrets(self.key, headers={**self.headers, **extra})

    def headers_for(self, *more: Mapping[str, str], extra: Mapping[str, str]) -> HeaderPairs:
        """The headers of a request; see `header_pairs`."""
        with LocalsForgotten():  # a key may be among them
            return header_pairs(self.headers, *more, extra=extra)


class Access:
    """Finds the server at the first call, with the key as it is then, and again after closing.

    Args:
        config: Where it is, and with which key.
        backend: Who asks, for errors.
        name: The same as a user knows it: its kind and its name.
        settings: Where the key is looked up if the configuration has none.
    """

    def __init__(
        self,
        config: DashScopeConfig | ServiceConfig,
        *,
        backend: str,
        name: str,
        settings: Callable[[], Settings],
    ) -> None:
        self._config = config
        self.backend = backend
        self._name = name
        self._settings = settings
        self._lock = threading.Lock()
        self._server: Server | None = None

    async def server(self) -> Server:
        """The server.

        Raises:
            ConfigError: There is no key, or something does not fit.
        """
        server = self._server
        # In a thread: importing the SDK takes most of a second, in which the event loop has others to serve.
        return server if server is not None else await sync.shared_in_worker(self._opened)

    async def aclose(self) -> None:
        """Close the connections."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            await server.http.aclose()

    def _opened(self) -> Server:
        with LocalsForgotten(), self._lock:  # a key is among them
            if self._server is None:
                url = _given_url(self._config)
                found = find_key(url, KEY_RULE, configured=self._config.api_key, settings=self._settings())
                key = found.or_missing(KEY_VARIABLE, needed_by=self._name)
                self._server = _open(self._config, key, url, self.backend)
            return self._server


def _given_url(config: DashScopeConfig | ServiceConfig) -> str | None:
    """The base URL that the configuration, else the environment gives; None for the SDK's.

    Raises:
        ConfigError: It is none, or that of another protocol.
    """
    url = config.server_url or os.environ.get(URL_VARIABLE)
    if not url:
        return None
    if "/compatible-mode/" in url:
        raise ConfigError(
            "base_url is that of DashScope's OpenAI-compatible mode: use the backend openai for it, "
            "or the address of DashScope's own protocol, which ends in /api/v1"
        )
    return checked_url(url)


def _open(config: DashScopeConfig | ServiceConfig, key: str, base_url: str | None, backend: str) -> Server:
    import dashscope
    import httpx

    try:
        client = dashscope.AsyncClient(
            api_key=key,
            base_url=base_url,
            workspace=config.workspace,
            region=config.region,
            protocol="native",
            max_retries=0,
            # It sends nothing; with one of its own, the SDK would load certificates for it.
            http_client=httpx.AsyncClient(transport=httpx.AsyncBaseTransport(), trust_env=False),
        )
        base = checked_url(str(httpx.URL(client.config.base_url)))
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError(f"the settings of DashScope do not fit: {error}") from error
    protocol = client.protocol
    blank = protocol.build_chat_request(model=config.model, messages=[], stream=True)
    return Server(
        http=HTTPClient(base, backend=backend),
        base=base,
        key=key,
        headers=_headers(key, client.config.workspace),
        paths={"text": blank.path, "multimodal": protocol.MULTIMODAL_PATH or blank.path},
        of_a_stream=(blank.body["parameters"], {**blank.headers, "accept": "text/event-stream"}),
    )


def _headers(key: str, workspace: str | None) -> dict[str, str]:
    headers = {
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "accept-encoding": "identity",  # what arrives is read as it is
    }
    # The SDK also sends an id of the process and the like: nobody asked for that.
    return {**headers, "x-dashscope-workspace": workspace} if workspace else headers
