"""Hosts: the arguments that make one, the settings that hold for it, and the objects that are registered with it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from jackfield.errors import ConfigError
from jackfield.plugins import PluginHost, Settings, ToolSpec, hook
from jackfield.plugins._host import checked_host, default_host
from tests.support.site import light

# --- arguments ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"settings": {}}, "settings must be jackfield.plugins.Settings, got dict"),
        ({"settings": Settings(), "paths": "/srv"}, "paths must be a list of folders, got str"),
        ({"settings": Settings(), "paths": b"/srv"}, "paths must be a list of folders, got bytes"),
        ({"settings": Settings(), "paths": {}}, "paths must be a list of folders, got dict"),
        ({"settings": Settings(), "paths": 5}, "paths must be a list of folders, got int"),
        ({"settings": Settings(), "paths": [5]}, "each of paths must be a folder, got int"),
    ],
    ids=str,
)
def test_a_wrong_argument_of_a_host_is_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PluginHost(**arguments)
    assert str(caught.value) == said


def test_a_host_may_be_any_object_that_is_one_and_no_class() -> None:
    class Other:
        def load_row(self) -> None: ...

    other: Any = Other()
    assert checked_host(other) is other
    assert checked_host(None) is default_host() is default_host()
    for wrong in (5, Other, object()):
        with pytest.raises(ConfigError, match=r"host must be a PluginHost or None \(for the installed plugins\)"):
            checked_host(wrong)  # type: ignore[arg-type]


# --- other settings, and narrower ones ---


class Offers:
    def __init__(self, *names: str) -> None:
        self.names = names

    @hook.tools
    def tools(self) -> list[ToolSpec]:
        return [ToolSpec(name=name, target="json:loads", description="Good.") for name in self.names]


def test_who_borrows_a_name_of_ours_gets_a_host_of_the_same_plugins(site: Any) -> None:
    site.add("acme", {"tool.code_interpreter": "acme_light"}, modules={
        "acme_light": light("code_interpreter", more=', secrets=("ACME_KEY",)'),
    })  # fmt: skip
    site.add_tools("other", "own")
    host = site.host()
    host.register(Offers("registered"), name="offers")
    rows = {row.name: row for row in host.catalog.rows}
    assert host.narrowed_to(rows["own"]) is host
    narrowed = host.narrowed_to(rows["code_interpreter"])
    assert narrowed is not host
    assert narrowed.paths == host.paths
    assert narrowed.names("tool") == host.names("tool")
    assert narrowed.settings != host.settings or narrowed.settings._only == frozenset({"ACME_KEY"})


def test_new_settings_hold_after_a_refresh_and_the_old_ones_without(site: Any) -> None:
    site.add_tools("acme", "x")
    host = site.host()
    assert host.names("tool") == ["x"]
    host.refresh(Settings(block=frozenset({"acme"})))
    assert host.names("tool") == []
    host.refresh()
    assert host.names("tool") == []


# --- registered objects ---


def test_an_object_has_one_name(site: Any) -> None:
    host, offers = site.host(), Offers("one")
    assert host.register(offers, name="My_Tools.2") == "my-tools-2@code"
    with pytest.raises(ConfigError, match="is already registered under another name"):
        host.register(offers, name="other")
    with pytest.raises(ConfigError, match="'my-tool@code' is not registered; did you mean 'my-tools-2@code'"):
        host.unregister("my-tool@code")
    assert host.register(Offers("two")) == "offers@code"
    module = ModuleType("acme.our_tools")
    module.tools = Offers("three").tools  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="is not a valid plugin name: use letters, digits, '-' and '_'"):
        host.register(Offers("x"), name="é" * 90)
