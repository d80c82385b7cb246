"""A deployment's URL is the one that OpenAI's own SDK asks, which is loaded only where it is needed."""

from __future__ import annotations

from urllib.parse import quote

import httpx2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost
from jackfield.settings import Settings
from jackfield_azure.backend import KEY_VARIABLE, TOKEN_VARIABLE, VERSIONLESS_PATH, AzureChat
from jackfield_azure.plugin import llms
from jackfield_testkit.forks import output_of

endpoints = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["http://", "https://"]),
    st.sampled_from(["name.openai.azure.com", "Name.example", "127.0.0.1", "[::1]"]),
    st.sampled_from(["", "", ":80", ":443", ":8000"]),
    st.lists(st.sampled_from(["v1", ".", "..", "a b", "{team}", "%7e", "a~b"]), max_size=2).map(
        lambda parts: "".join(f"/{part}" for part in parts)
    ),
)
deployments = (st.text(min_size=1, max_size=5) | st.sampled_from(["gpt-5", "org/model"])).filter(
    lambda text: text.strip(".")
)


def url_of(endpoint: str, deployment: str, version: str) -> str:
    """Where requests go."""
    config = {"model": "m", "azure_endpoint": endpoint, "azure_deployment": deployment, "api_version": version}
    return AzureChat({**config, "api_key": "k"}, host=PluginHost(Settings())).server().url


def url_of_the_sdk(endpoint: str, deployment: str, version: str) -> str:
    """Return where the SDK sends its own."""
    import openai  # takes a second, which collecting all tests need not spend

    asked: list[httpx2.URL] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url)
        return httpx2.Response(200, json={})

    client = openai.AzureOpenAI(
        azure_endpoint=endpoint,
        azure_deployment=deployment,
        api_version=version,
        api_key="k",
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer), trust_env=False),
    )
    client.chat.completions.create(model="m", messages=[])
    return str(asked[0])


@given(endpoints, deployments, st.sampled_from(["2024-06-01", "2025-01-01-preview"]))
def test_a_deployment_is_asked_where_the_sdk_would_ask_it(endpoint: str, deployment: str, version: str) -> None:
    assume(not endpoint.rstrip("/").endswith(VERSIONLESS_PATH))
    try:
        url = url_of(endpoint, deployment, version)
    except ConfigError:
        assume(False)
    in_a_path = quote(deployment, safe="", errors="replace")  # a slash in it would be one of the path
    assert url == url_of_the_sdk(endpoint, in_a_path, version)


def test_the_sdk_is_loaded_only_where_it_writes_the_address_otherwise() -> None:
    program = (
        "import sys; from jackfield_azure.backend import AzureChat\n"
        "for endpoint in sys.argv[1:]:\n"
        "    AzureChat({'model': 'org/a b', 'api_key': 'k', 'azure_endpoint': endpoint}).server()\n"
        "    print('openai' in sys.modules)"
    )
    loaded = output_of(program, "https://name.openai.azure.com", "https://NAME.openai.azure.com:443")
    assert loaded.split() == ["False", "True"]


def test_a_deployment_has_a_name() -> None:
    assert "/deployments/a/" in url_of("https://name.openai.azure.com", "a", "2")
    for deployment, version in (("", "2024-06-01"), ("a", "")):
        with pytest.raises(ConfigError, match=r"azure_deployment|api_version"):
            url_of("https://name.openai.azure.com", deployment, version)


def test_the_models_of_a_key_are_not_listed_and_the_error_says_where_they_are() -> None:
    model = AzureChat({"model": "m", "api_key": "k"}, host=PluginHost(Settings()))
    with pytest.raises(ConfigError, match="look them up in the Azure portal, and use azure:DEPLOYMENT"):
        sync.run(model.alist_models())


def test_both_of_its_secrets_are_declared() -> None:
    (spec,) = llms()
    assert set(spec.secrets) == {KEY_VARIABLE, TOKEN_VARIABLE}
