"""Agents by name, or from data: the kinds, their options, and what their parts ask for."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield import BasicAgent, FnCallAgent, create_agent, tool
from jackfield.agents import Handoff
from jackfield.errors import BrokenPluginError, ConfigError, PluginNotFoundError
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
    for file in ("agent.yaml", "agent.yml", "agent.toml", "agent.json"):
        with pytest.raises(ConfigError, match=rf"create_agent\(load_agent_config\('{file}'\)\)"):
            create_agent(file)


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


# --- kinds and agents inside ---

KINDS = """
from jackfield.plugins import AgentSpec, hook

@hook.agents
def agents():
    names = ("own", "free", "wrong", "pairs", "common")
    return [AgentSpec(name=name, target=f"acme_kinds:{name.title()}") for name in names]
"""
CLASSES = """
from typing import Unpack

from jackfield import FnCallAgent
from jackfield.agents import AgentOptions

class Own(FnCallAgent):
    def __init__(self, function_list=None, llm=None, *, size: int = 1, ratio: float | None = None, who=None, host=None):
        super().__init__(function_list, llm, host=host)
        self.size, self.ratio, self.who = size, ratio, who

class Free(FnCallAgent):
    def __init__(self, *, host=None, **anything):
        super().__init__(host=host)
        self.anything = anything

class Pairs(FnCallAgent):
    def __init__(self, agents=(), lead=None, **options):
        super().__init__(**options)
        self.agents, self.lead = agents, lead

class Common(FnCallAgent):
    def __init__(self, **options: Unpack[AgentOptions]):
        super().__init__(**options)

def Wrong(**options):
    return 5
"""


@pytest.fixture
def kinds(site: Any) -> PluginHost:
    names = ("own", "free", "wrong", "pairs", "common")
    modules = {"acme_light": KINDS, "acme_kinds": "from __future__ import annotations\n" + CLASSES}
    site.add("acme", {f"agent.{name}": "acme_light" for name in names}, modules=modules)
    host: PluginHost = site.host()
    return host


FAULTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no kind": (5, {}, "kind must be a name such as 'fncall', a dict or an AgentConfig, got int"),
    "no class": ("wrong", {}, "agent kind 'wrong' is not a subclass of jackfield.Agent"),
    "no option": (
        "own",
        {"sice": 1},
        "agent kind 'own' has no option 'sice'; did you mean 'size'? (its own options: ratio, size, who)",
    ),
    "no option of a core kind": ("fncall", {"x": 1}, "(its own options: none)"),
    "the host in a configuration": (
        {"agent": "common", "host": "here"},
        {},
        "agent kind 'common' has no option 'host'; known: adjustable",
    ),
    "a wrong type": ("own", {"size": "3"}, "option 'size' of agent kind 'own' must be int, got str"),
    "a wrong type of several": (
        "own",
        {"ratio": "3"},
        "option 'ratio' of agent kind 'own' must be float or None, got str",
    ),
    "history of a hand-off": (
        "fncall",
        {"handoffs": [{"agent": "basic", "history": "last"}]},
        "a handoff's history must be 'all' or 'question', got 'last'",
    ),
    "a name in a configuration": ({"agent": "basic", "name": "clerk", "limits": {"turns": -1}}, {}, "agent clerk"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_cannot_be_made_is_told(kinds: PluginHost, case: str) -> None:
    kind, options, text = FAULTS[case]
    with pytest.raises((ConfigError, BrokenPluginError)) as caught:
        create_agent(kind, host=kinds, **options)
    assert text in str(caught.value)


def test_a_missing_kind_names_its_component_and_what_is_close(kinds: PluginHost) -> None:
    with pytest.raises(PluginNotFoundError, match="did you mean 'fncall'") as caught:
        create_agent("fncal", host=kinds)
    assert caught.value.component == "agent.fncal"
    with pytest.raises(PluginNotFoundError) as caught:
        create_agent("entirely_else", host=kinds)
    assert "fncall" not in str(caught.value)


def test_a_kind_gets_its_options_and_its_name(kinds: PluginHost) -> None:
    own: Any = create_agent("own", host=kinds, size=3, ratio=1, who=object())
    assert (own.kind, own.size, own.ratio, own.host) == ("own", 3, 1, kinds)
    assert create_agent("acme/own", host=kinds, ratio=None).kind == "acme/own"
    free: Any = create_agent("free", host=kinds, anything_at_all=1)
    assert free.anything == {"anything_at_all": 1}


def test_options_of_code_win_over_those_of_a_configuration(kinds: PluginHost) -> None:
    config = {"agent": "own", "size": 3, "ratio": 0.5, "options": {}, "prompt": "not an option"}
    del config["options"]
    own: Any = create_agent(config, host=kinds, size=4)
    assert (own.kind, own.size, own.ratio) == ("own", 4, 0.5)
    assert create_agent({"agent": "own", "options": {"size": 7}}, host=kinds).size == 7  # type: ignore[attr-defined]


def test_agents_inside_get_the_outer_model_unless_they_have_one(kinds: PluginHost) -> None:
    outer, inner = ScriptedModel([]), ScriptedModel([])
    pairs: Any = create_agent(
        "pairs",
        host=kinds,
        llm=outer,
        agents=[{"agent": "basic", "name": "a"}, {"agent": "fncall", "name": "b", "llm": None}, double],
        lead={"agent": "own", "size": 2},
        function_list=[{"agent": "basic", "name": "c", "description": "Is c."}, double],
        handoffs=[{"agent": "basic", "name": "d", "description": "Is d.", "history": "question"}],
    )
    assert [type(one).__name__ for one in pairs.agents] == ["BasicAgent", "FnCallAgent", "FunctionTool"]
    assert (pairs.lead.size, pairs.lead.llm, pairs.agents[0].llm, pairs.agents[1].llm) == (2, outer, outer, outer)
    assert [*pairs.function_map] == ["c", "double", "transfer_to_d"]
    [handoff] = pairs.handoffs
    assert (handoff.history, handoff.agent.llm, handoff.agent.host) == ("question", outer, kinds)
    with pytest.raises(PluginNotFoundError):
        create_agent("pairs", host=kinds, llm=inner, lead={"agent": "basic", "llm": "gone:x"})
    alone: Any = create_agent("pairs", host=kinds, lead={"agent": "basic"}, agents=("as", "it", "is"))
    assert (alone.lead.llm, alone.agents) == (None, ("as", "it", "is"))


@pytest.mark.parametrize("form", [list, tuple])
def test_agents_inside_may_be_data_and_objects_in_a_list_or_a_tuple(kinds: PluginHost, form: Any) -> None:
    one = FnCallAgent([], ScriptedModel([]), name="one", description="Is one.")
    two = {"agent": "basic", "name": "two", "description": "Is two."}
    pairs: Any = create_agent(
        "pairs", host=kinds, llm=ScriptedModel([]), agents=form([one, two]), handoffs=form([one, Handoff(one), two])[1:]
    )
    assert [agent.name for agent in pairs.agents] == ["one", "two"]
    assert pairs.agents[0] is pairs.handoffs[0].agent is one
    assert [handoff.agent.name for handoff in pairs.handoffs] == ["one", "two"]


def test_no_package_can_take_the_name_of_a_kind_of_the_core(site: Any) -> None:
    light = KINDS.replace('("own", "free", "wrong", "pairs", "common")', '("fncall",)').replace("{name.title()}", "Own")
    site.add("acme", {"agent.fncall": "acme_light"}, modules={"acme_light": light, "acme_kinds": CLASSES})
    host = site.host(allow=("acme",))
    assert host.names("agent") == ["fncall"]
    assert type(create_agent("fncall", host=host)) is FnCallAgent
    assert type(create_agent({"agent": "fncall"}, host=host)) is FnCallAgent
    assert type(create_agent("acme/fncall", host=host)).__name__ == "Own"
