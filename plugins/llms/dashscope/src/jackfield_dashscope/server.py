"""The way to DashScope: the SDK says where the server is, how one is let in and what a request for a stream has.

Nothing of it is set for the whole process: two components with two keys do not meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jackfield.errors import ConfigError
from jackfield.settings import Settings
from jackfield_backend.keys import FoundKey, KeyRule, find_key
from jackfield_dashscope.config import DashScopeConfig, Endpoint, ServiceConfig
from jackfield_http import Server, checked_url, given_url

KEY_VARIABLE = "DASHSCOPE_API_KEY"
URL_VARIABLE = "DASHSCOPE_HTTP_URL"  # Qwen-Agent's; the SDK's own are the SDK's business
HOSTS = ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com")
KEY_RULE = KeyRule(KEY_VARIABLE, (*HOSTS, ".dashscope.aliyuncs.com", ".maas.aliyuncs.com"), URL_VARIABLE)


@dataclass(frozen=True, slots=True)
class DashScopeServer(Server):
    """Where requests go, and with what. `url` is the one that paths are put behind.

    Attributes:
        paths: Where models are asked for an answer.
        stream_parameters: Those of a request for a stream.
        stream_headers: The same.
    """

    paths: Mapping[Endpoint, str] = field(default_factory=dict)
    stream_parameters: Mapping[str, Any] = field(default_factory=dict)
    stream_headers: Mapping[str, str] = field(default_factory=dict)


def find_server(config: DashScopeConfig | ServiceConfig, *, needed_by: str, settings: Settings) -> DashScopeServer:
    """The server, with the key as it is now.

    Args:
        config: Where it is, and with which key.
        needed_by: Who asks, as a user knows it: its kind and its name.
        settings: Where the key is looked up if the configuration has none.

    Raises:
        ConfigError: There is no key, or something does not fit.
    """
    url = native_url(config)
    key = find_key(url, KEY_RULE, configured=config.api_key, settings=settings)
    key.or_missing(needed_by=needed_by)
    return _server_by_sdk(config, key, url)


def native_url(config: DashScopeConfig | ServiceConfig) -> str | None:
    """The base URL that the configuration, else the environment gives; None for the SDK's.

    Raises:
        ConfigError: It is none, or that of another protocol.
    """
    url = given_url(config.server_url, KEY_RULE)
    if url and "/compatible-mode/" in url:
        raise ConfigError(
            "base_url is that of DashScope's OpenAI-compatible mode: use the backend openai for it, "
            "or the address of DashScope's own protocol, which ends in /api/v1"
        )
    return url


def _server_by_sdk(config: DashScopeConfig | ServiceConfig, key: FoundKey, base_url: str | None) -> DashScopeServer:
    import dashscope
    import httpx

    try:
        client = dashscope.AsyncClient(
            api_key=key.value,
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
    return DashScopeServer(
        base,
        _headers(key, client.config.workspace),
        key,
        paths={"text": blank.path, "multimodal": protocol.MULTIMODAL_PATH or blank.path},
        stream_parameters=blank.body["parameters"],
        stream_headers={**blank.headers, "accept": "text/event-stream"},
    )


def _headers(key: FoundKey, workspace: str | None) -> dict[str, str]:
    headers = {"authorization": f"Bearer {key.value}", "accept": "application/json"}
    # The SDK also sends an id of the process and the like: nobody asked for that.
    return {**headers, "x-dashscope-workspace": workspace} if workspace else headers
