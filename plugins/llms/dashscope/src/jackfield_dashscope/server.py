"""Determine the URL, credentials and streaming parameters that DashScope's SDK would use.

Loading the SDK takes longer than the rest of the first answer. This module therefore duplicates the SDK's defaults, and
loads the SDK only if it has been configured.

No process-wide setting is changed, so components with different API keys do not affect each other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from jackfield.errors import ConfigError
from jackfield.settings import Settings
from jackfield_dashscope.config import DashScopeConfig, DashScopeImagesConfig, Endpoint, ServiceConfig
from jackfield_http import Server, check_url, configured_url
from jackfield_http.addresses import is_plain
from jackfield_http.keys import FoundKey, KeyRule, find_key

KEY_VARIABLE = "DASHSCOPE_API_KEY"
URL_VARIABLE = "DASHSCOPE_HTTP_URL"  # Qwen-Agent's; the SDK reads its own variables
HOSTS = ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com")
KEY_RULE = KeyRule(KEY_VARIABLE, (*HOSTS, ".dashscope.aliyuncs.com", ".maas.aliyuncs.com"), URL_VARIABLE)

AnyConfig: TypeAlias = DashScopeConfig | ServiceConfig | DashScopeImagesConfig

_SHARED_GATEWAY = f"https://{HOSTS[0]}/api/v1"
_PATHS: Mapping[Endpoint, str] = {
    "text": "/services/aigc/text-generation/generation",
    "multimodal": "/services/aigc/multimodal-generation/generation",
}
_STREAM_PARAMETERS: Mapping[str, Any] = {"result_format": "message", "incremental_output": True}
_STREAM_HEADERS: Mapping[str, str] = {"X-DashScope-SSE": "enable", "accept": "text/event-stream"}
_KNOWN_VARIABLES = frozenset({KEY_VARIABLE, URL_VARIABLE})
_CONFIGURATION_OF_THE_SDK = "~/.dashscope/config.toml"


@dataclass(frozen=True, slots=True)
class DashScopeServer(Server):
    """The base URL and headers of requests. Paths are appended to `url`.

    Attributes:
        paths: The model paths, by endpoint.
        stream_parameters: The parameters of a streaming request.
        stream_headers: The headers of a streaming request.
    """

    paths: Mapping[Endpoint, str] = field(default_factory=dict)
    stream_parameters: Mapping[str, Any] = field(default_factory=dict)
    stream_headers: Mapping[str, str] = field(default_factory=dict)


def find_server(config: AnyConfig, *, needed_by: str, settings: Settings) -> DashScopeServer:
    """Return the server, with the current API key.

    Args:
        config: The component's configuration.
        needed_by: The kind and name of the component, for error messages.
        settings: Where to look up the API key if it is not configured.

    Raises:
        ConfigError: There is no API key, or a setting is invalid.
    """
    url = native_url(config)
    key = find_key(url, KEY_RULE, configured=config.api_key, settings=settings)
    key.or_missing(needed_by=needed_by)
    if _sdk_knows_better(config, url):
        return _server_by_sdk(config, key, url)
    return DashScopeServer(
        url or _SHARED_GATEWAY,
        _headers(key, config.workspace),
        key,
        paths=_PATHS,
        stream_parameters=_STREAM_PARAMETERS,
        stream_headers=_STREAM_HEADERS,
    )


def native_url(config: AnyConfig) -> str | None:
    """Return the base URL from the configuration or the environment, or None to use the SDK's.

    Raises:
        ConfigError: The URL is invalid, or belongs to another protocol.
    """
    url = configured_url(config.server_url, KEY_RULE)
    if url and "/compatible-mode/" in url:
        raise ConfigError(
            "base_url is the URL of DashScope's OpenAI-compatible mode: use that URL with the openai backend, "
            "or use the URL of DashScope's own protocol, which ends in /api/v1"
        )
    return url


def usual_url(config: AnyConfig) -> str:
    """Return the server's URL when `base_url` is not set, or '' if only the SDK can determine it."""
    if config.region or config.workspace or _sdk_is_configured_outside():
        return ""
    sdk = sys.modules.get("dashscope")
    return _SHARED_GATEWAY if sdk is None else str(getattr(sdk, "base_http_api_url", ""))


def _sdk_knows_better(config: AnyConfig, url: str | None) -> bool:
    is_made_by_sdk = config.region or (config.workspace and url is None) or not is_plain(url or _SHARED_GATEWAY)
    return bool(is_made_by_sdk) or _sdk_is_configured()


def _sdk_is_configured() -> bool:
    if "dashscope" in sys.modules:  # the SDK may have process-wide settings, and is cheap to use once loaded
        return True
    return _sdk_is_configured_outside()


def _sdk_is_configured_outside() -> bool:
    others = {name for name in os.environ if name.startswith("DASHSCOPE_")} - _KNOWN_VARIABLES
    configuration = os.path.expanduser(_CONFIGURATION_OF_THE_SDK)  # noqa: PTH111 - Path raises for a user without a home
    return bool(others) or Path(configuration).is_file()


def _server_by_sdk(config: AnyConfig, key: FoundKey, base_url: str | None) -> DashScopeServer:
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
            # This client sends nothing; without it, the SDK would create one and load certificates.
            http_client=httpx.AsyncClient(transport=httpx.AsyncBaseTransport(), trust_env=False),
        )
        base = check_url(str(httpx.URL(client.config.base_url)))
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError(f"invalid DashScope settings: {error}") from error
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
    # Without the process id and other data that the SDK also sends.
    return {**headers, "x-dashscope-workspace": workspace} if workspace else headers
