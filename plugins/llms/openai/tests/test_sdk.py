"""Where requests go, and with which headers: as OpenAI's own SDK says, which is loaded only where it is needed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import httpx2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_http import Server
from jackfield_http.server import HEADERS
from jackfield_openai.backend import OpenAIChat
from jackfield_testkit.forks import output_of

Environment = Mapping[str, str | None]
NOBODYS = "OPENAI_OF_A_LATER_SDK"  # only a later SDK might know it: so the SDK is asked
WITHOUT_EFFECT = ("OPENAI_MODEL", "OPENAI_API_BASE", "OPENAI_API_TYPE", "OPENAI_API_VERSION")

labels = st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,8}[A-Za-z0-9_])?", fullmatch=True)
hosts = (
    st.just("api.openai.com")
    | labels.map("{}.example".format)
    | st.ip_addresses(v=4).map(str)
    | st.ip_addresses(v=6).map("[{}]".format)
)
ports = st.sampled_from(["", "", ":80", ":443", ":08000", ":8000", ":65535"])
parts = st.text(st.sampled_from("aZ09-._~%{}|^<>:@!$&'()*+,;=/"), max_size=6) | st.sampled_from(
    ["%7e", "%2F", ".", "..", "v1", "v1"]
)
addresses = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["http://", "https://"]),
    hosts,
    ports,
    st.lists(parts, max_size=3).map(lambda found: "".join(f"/{part}" for part in found)),
)
values = st.none() | st.from_regex(r"[!-~]{0,12}", fullmatch=True)
environments = st.fixed_dictionaries(
    dict.fromkeys(("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"), values)
    | {"OPENAI_BASE_URL": st.none() | addresses}
)
configurations = st.fixed_dictionaries(
    {"base_url": st.none() | addresses, "api_key": values, "organization": values, "project": values}
)


def server_of(configuration: Mapping[str, str | None], environment: Environment) -> Server:
    """Where requests go, in an environment that has nothing else of OpenAI."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("OPENAI_")]:
            patch.delenv(name)
        for name, value in environment.items():
            if value is not None:
                patch.setenv(name, value)
        settings = {name: value for name, value in configuration.items() if value is not None}
        return OpenAIChat({"model": "m", **settings}, host=PluginHost(Settings())).server()


def sent(server: Server) -> tuple[object, ...]:
    """What of it a request shows."""
    return server.url, {**HEADERS, **server.headers}, server.key


@given(configurations, environments)
def test_requests_go_where_the_sdk_would_send_them_and_with_its_headers(
    configuration: Mapping[str, str | None], environment: Environment
) -> None:
    try:
        by_the_sdk = server_of(configuration, {**environment, NOBODYS: "1"})
    except ConfigError:  # a missing key is one, too
        assume(False)
    assert sent(server_of(configuration, environment)) == sent(by_the_sdk)


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_a_variable_for_which_the_sdk_is_not_loaded_would_change_nothing_in_it(name: str) -> None:
    key = {"OPENAI_API_KEY": "sk-1", NOBODYS: "1"}
    assert sent(server_of({}, {**key, name: "http://else.example"})) == sent(server_of({}, key))


def test_variables_that_only_the_sdk_can_read_count() -> None:
    headers = server_of({}, {"OPENAI_API_KEY": "k", "OPENAI_CUSTOM_HEADERS": "X-Team: blue\nUser-Agent: ours"}).headers
    assert (headers["x-team"], headers["user-agent"]) == ("blue", "ours")


def test_headers_of_the_environment_stay_here_with_its_key() -> None:
    environment = {"OPENAI_API_KEY": "k", "OPENAI_CUSTOM_HEADERS": "X-Gateway-Key: secret", "OPENAI_ORG_ID": "o"}
    server = server_of({"base_url": "http://else.example/v1", "project": "mine"}, environment)
    assert server.headers == {"accept": "application/json", "authorization": "Bearer EMPTY", "openai-project": "mine"}
    together = server_of({}, {**environment, "OPENAI_BASE_URL": "http://else.example/v1"})
    assert together.headers["x-gateway-key"] == "secret"


def test_the_sdk_names_neither_itself_nor_the_machine() -> None:
    headers = server_of({}, {"OPENAI_API_KEY": "k", NOBODYS: "1"}).headers
    assert set(headers) == {"accept", "content-type", "authorization"}


def test_the_sdk_reads_variables_of_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read = set()

    class Watched(dict[str, str]):
        def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
            read.add(name)
            return super().get(name, default)

    import openai

    monkeypatch.setattr(os, "environ", Watched(os.environ))
    openai.AsyncOpenAI(
        api_key="k", http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False)
    )
    assert "OPENAI_BASE_URL" in read
    assert [name for name in read if not name.startswith("OPENAI_")] == []


LOADED = """
import json, os, sys
from jackfield_openai.backend import OpenAIChat
loaded = []
for base_url, variables in json.loads(sys.argv[1]):
    os.environ |= variables
    OpenAIChat({"model": "m", "api_key": "k", "base_url": base_url}).server()
    loaded.append(sys.modules.pop("openai", None) is not None)
    for name in variables:
        del os.environ[name]
print(json.dumps(loaded))
"""


def test_the_sdk_is_loaded_only_where_it_knows_better() -> None:
    usual = [[None, {}], ["http://127.0.0.1:8000/v1", {"OPENAI_ORG_ID": "o", "OPENAI_MODEL": "m"}]]
    special = [
        ["http://127.0.0.1:8000/v1", {"OPENAI_CUSTOM_HEADERS": "X-Team: blue"}],
        ["http://127.0.0.1:8000/{team}/v1", {}],
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    assert json.loads(output_of(LOADED, json.dumps(usual + special), env=kept)) == [False, False, True, True]
