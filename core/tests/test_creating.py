"""Agents by name, or from data: the kinds, their options, and what their parts ask for."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield import BasicAgent, create_agent, tool
from jackfield.errors import ConfigError, PluginNotFoundError
from jackfield.plugins import PluginHost
from jackfield.testing import ScriptedModel

SEARCHING = """
from jackfield.plugins import ToolSpec, hook

PLAIN = "searcher.plain"

@hook.tools
def tools():
    return [ToolSpec(
        name="look", target="acme:Look", description="Looks.", config="acme_settings:Settings",
        required_by={"way": {"both": [PLAIN, "searcher.other"]}, "searchers": "searcher", "most": [PLAIN], "": [PLAIN]},
    )]
"""
SETTINGS = """
from jackfield.config import ComponentSettings, Config

class Settings(Config):
    way: str | None = None
    searchers: tuple[str | ComponentSettings, ...] = ()
    most: int | None = None
    size: int = 1
"""


def asking_for_searchers(site: Any) -> PluginHost:
    site.add("acme", {"tool.look": "acme_light"}, modules={"acme_light": SEARCHING, "acme_settings": SETTINGS})
    host: PluginHost = site.host()
    return host


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_create_agent_makes_the_cores_kinds_and_names_what_is_close() -> None:
    assert isinstance(create_agent("basic"), BasicAgent)
    made = create_agent({"agent": "fncall", "name": "n", "limits": {"turns": 3}})
    assert (made.name, made.limits.turns) == ("n", 3)
    with pytest.raises(ConfigError, match="did you mean 'system_message'"):
        create_agent({"system_mesage": "x"})
    with pytest.raises(ConfigError, match="agent kind 'fncall' has no option 'rag_cfg'"):
        create_agent({"agent": "fncall", "rag_cfg": {}})
    with pytest.raises(ConfigError, match="did you mean 'limits'"):
        create_agent("basic", limit={"turns": 1})
    with pytest.raises(PluginNotFoundError, match="no agent 'asistant'"):
        create_agent("asistant")
    with pytest.raises(PluginNotFoundError, match="did you mean 'fncall'"):
        create_agent("fncal")
    with pytest.raises(ConfigError, match=r"create_agent\(load_agent_config\('agent.yaml'\)\)"):
        create_agent("agent.yaml")


def test_tools_may_come_from_a_generator() -> None:
    agent = create_agent("fncall", llm=ScriptedModel([]), function_list=(one for one in (double,)))
    assert list(agent.function_map) == ["double"]


# --- settings that name other components ---


def test_what_settings_name_is_reported_when_the_agent_is_made_if_it_is_not_installed(site: Any) -> None:
    host = asking_for_searchers(site)
    for settings, missing in (
        ({"searchers": ["front_page"]}, "front_page"),
        ({"searchers": [{"name": "front_page", "depth": 3}]}, "front_page"),
        ({"way": "both"}, "plain"),
        ({"most": 3}, "plain"),
        ({"way": "both", "searchers": ["front_page"]}, "plain"),
        ({"way": None, "searchers": ["front_page"]}, "front_page"),
    ):
        with pytest.raises(PluginNotFoundError, match=f"no searcher '{missing}' is installed"):
            create_agent("fncall", function_list=[{"name": "look", **settings}], host=host)


def test_settings_that_name_others_are_checked_when_the_agent_is_made(site: Any) -> None:
    with pytest.raises(ConfigError, match=r"settings of tool 'acme/look': unknown setting 'wey'; did you mean 'way'"):
        create_agent("fncall", function_list=[{"name": "look", "wey": "both"}], host=asking_for_searchers(site))


def test_what_no_setting_names_may_be_missing_until_it_is_needed(site: Any) -> None:
    settings = {"name": "look", "approval": "always", "size": 100}
    agent = create_agent("fncall", function_list=[settings], host=asking_for_searchers(site))
    assert agent.function_map.keys() == {"look"}
