"""A name that means nothing is answered with the nearest, and with a few names however many there are."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from jackfield.errors import BrokenPluginError, IncompatiblePluginError, PluginNotFoundError
from jackfield.plugins import PluginHost, ToolSpec, hook
from jackfield.settings import Settings
from jackfield_manage.judging.doctor import examine

TOOL = """
from jackfield.plugins import PluginHost, ToolSpec, hook
from jackfield.settings import Settings
@hook.{}
def tools():
    return [ToolSpec(name="x", target="a:b", description="")]
"""


def names_in(text: str) -> list[str]:
    return re.findall(r"tool-?\d+", text)


def test_with_a_thousand_installed_an_error_names_a_few_and_how_many_there_are(site: Any, command_line: Any) -> None:
    site.add("acme-many", {f"tool.tool{number}": "many" for number in range(1000)})
    with pytest.raises(PluginNotFoundError) as nowhere:
        site.host().find("tool", "zzz")
    assert len(names_in(str(nowhere.value))) == 8
    assert "and 992 more" in str(nowhere.value)
    with pytest.raises(PluginNotFoundError) as near:
        site.host().find("tool", "tool77x")
    assert 1 <= len(names_in(str(near.value))) <= 8
    for words in (("info", "zzz"), ("why", "zzz"), ("enable", "zzz"), ("doctor", "zzz"), ("uninstall", "zzz")):
        done = command_line("plugins", *words)
        assert done.returncode != 0
        assert len(names_in(done.stderr)) <= 8, words
        assert len(done.stderr) < 1000, words
    done = command_line("run", "-m", "zzz:m", "-t", "zzz", "hi")
    assert len(done.stderr) < 1000


def test_a_misspelt_hook_names_the_nearest(site: Any) -> None:
    with pytest.raises(AttributeError, match=r"unknown hook 'toolz': did you mean 'tools'"):
        hook.toolz  # type: ignore[attr-defined] # noqa: B018
    site.add("acme", {"tool.x": "acme_light"}, modules={"acme_light": TOOL.format("tols")})
    with pytest.raises(BrokenPluginError, match=r"did you mean 'tools'"):
        site.host().spec("tool", "x", ToolSpec)


GROUPS = {"acme": "jackfeild.v1", "bare": "jackfield", "dash": "jackfield-v1", "word": "jackfield.plugins",
          "case": "Jackfield.v1"}  # fmt: skip


def test_a_misspelt_group_names_the_right_one(site: Any) -> None:
    for name, group in GROUPS.items():
        site.add(name, {"tool.x": f"{name}_light"}, group=group)
    site.add("other", {"thing": "other"}, group="jupyter.v1")
    told = {
        name: f"has 'tool.x' in the group {group!r}, which is never read: did its authors mean 'jackfield.v1'?"
        for name, group in GROUPS.items()
    }
    with pytest.raises(PluginNotFoundError) as nowhere:
        PluginHost(paths=[str(site.folder), *sys.path]).find("tool", "x")
    assert all(f"{name} {text}" in str(nowhere.value) for name, text in told.items())
    without = PluginHost(Settings(block=frozenset({"jackfield-manage"})), paths=[str(site.folder), *sys.path])
    with pytest.raises(PluginNotFoundError, match=r"^no tool 'x' is installed((?!never read).)*$"):
        without.find("tool", "x")
    found = {finding.distribution: finding for finding in examine(site.host()) if finding.distribution in GROUPS}
    assert {name: finding.why for name, finding in found.items()} == told
    assert {finding.status for finding in found.values()} == {"malformed"}
    assert [finding.fix for finding in found.values()] == [f"tell the authors of {name}" for name in found]


def test_a_misspelt_kind_names_the_nearest(site: Any) -> None:
    site.add("acme", {"tol.x": "acme_light"})
    with pytest.raises(IncompatiblePluginError, match=r"did its authors mean 'tool'?"):
        site.host().find("tol", "x")
    (found,) = [finding for finding in examine(site.host()) if finding.distribution == "acme"]
    assert found.status == "incompatible"
    assert "did its authors mean 'tool'?" in found.why
    assert found.fix == "tell the authors of acme"


def test_an_entry_point_that_names_an_object_says_what_it_must_name(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_light:tools", "tool.y": "acme_light"}, modules={"acme_light": ""})
    with pytest.raises(PluginNotFoundError, match=r"must name a module: tool\.x = acme_light"):
        site.host().find("tool", "x")
    assert site.host().names("tool") == ["y"], "the others are there"
