"""Requests go where the SDK sends its own and have what those have; it is loaded only where it is configured."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jackfield_dashscope import server
from jackfield_testkit.forks import CORE, output_of

USUAL: list[dict[str, str]] = [
    {},
    {"model_server": "dashscope"},
    {"base_url": "https://dashscope-intl.aliyuncs.com/api/v1/"},
    {"base_url": "http://127.0.0.1:8000/api/v1", "workspace": "ws-1"},
]
WRITTEN_BY_THE_SDK: list[dict[str, str]] = [
    {"workspace": "ws-1"},
    {"base_url": "http://127.0.0.1:80/api/v1"},
    {"base_url": "https://Gateway.example/{team}/api/v1", "workspace": "ws-1"},
]
# What the SDK itself needs, but not the SDK: what it is configured with counts when it is imported.
BEFORE = f"{CORE}\nimport aiohttp, httpx, requests, jackfield_dashscope.server"
SERVERS = """
import json, sys, warnings
from jackfield.settings import Settings
from jackfield_dashscope.config import DashScopeConfig
from jackfield_dashscope.server import find_server

warnings.simplefilter("ignore", UserWarning)  # the SDK's advice to have a workspace
servers, loaded = [], []
for case in json.loads(sys.argv[1]):
    sys.modules.pop("dashscope", None)  # its parts stay, and with them what they have read
    exec(sys.argv[2])
    config = DashScopeConfig.model_validate({"model": "m", "api_key": "sk-1", **case})
    server = find_server(config, needed_by="a test", settings=Settings())
    servers.append(
        [server.url, *map(dict, (server.headers, server.paths, server.stream_parameters, server.stream_headers))]
    )
    loaded.append("dashscope" in sys.modules)
print(json.dumps({"servers": servers, "loaded": loaded}))
"""


def found(home: Path, *cases: dict[str, str], code: str = "", **variables: str) -> dict[str, Any]:
    """What is found for cases in a process of its own: `servers`, and for each whether the SDK was `loaded` for it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DASHSCOPE_")}
    environment = {**kept, "HOME": str(home), "USERPROFILE": str(home), **variables}
    result: dict[str, Any] = json.loads(output_of(SERVERS, json.dumps(cases), code, env=environment, before=BEFORE))
    return result


def test_requests_go_where_the_sdk_sends_them_and_have_what_its_own_have(tmp_path: Path) -> None:
    by_the_sdk = found(tmp_path, *USUAL, code="import dashscope")["servers"]
    assert found(tmp_path, *USUAL) == {"servers": by_the_sdk, "loaded": [False] * len(USUAL)}


def test_the_sdk_is_asked_for_what_it_writes_in_its_own_way(tmp_path: Path) -> None:
    assert found(tmp_path, *WRITTEN_BY_THE_SDK)["loaded"] == [True] * len(WRITTEN_BY_THE_SDK)


@pytest.mark.parametrize(
    ("case", "variables", "url"),
    [
        ({"region": "ap-southeast-1"}, {}, "https://dashscope-intl.aliyuncs.com/api/v1"),
        ({}, {"DASHSCOPE_REGION": "ap-southeast-1"}, "https://dashscope-intl.aliyuncs.com/api/v1"),
        ({}, {"DASHSCOPE_BASE_URL": "http://127.0.0.1:1/api/v1"}, "http://127.0.0.1:1/api/v1"),
    ],
)
def test_what_is_configured_for_the_sdk_counts(
    tmp_path: Path, case: dict[str, str], variables: dict[str, str], url: str
) -> None:
    result = found(tmp_path, case, **variables)
    assert (result["servers"][0][0], result["loaded"]) == (url, [True])


def test_the_sdks_own_file_and_its_settings_in_the_process_count(tmp_path: Path) -> None:
    code = "import dashscope; dashscope.settings.base_url = 'http://127.0.0.1:2/api/v1'"
    assert found(tmp_path, {}, code=code)["servers"][0][0] == "http://127.0.0.1:2/api/v1"
    file = tmp_path / ".dashscope" / "config.toml"
    file.parent.mkdir()
    file.write_text('base_url = "http://127.0.0.1:3/api/v1"')
    assert found(tmp_path, {})["servers"][0][0] == "http://127.0.0.1:3/api/v1"


@pytest.mark.parametrize(
    ("name", "is_outside"),
    [
        ("DASHSCOPE_API_KEY", False),
        ("DASHSCOPE_HTTP_URL", False),
        ("DASHSCOPE_WORKSPACE", True),
        ("DASHSCOPE_REGION", True),
        ("OTHER_KEY", False),
    ],
)
def test_the_sdk_is_asked_only_if_more_than_a_key_and_an_address_is_set(
    name: str, is_outside: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in [one for one in os.environ if one.startswith("DASHSCOPE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(name, "x")
    assert server._sdk_is_configured_outside() is is_outside
