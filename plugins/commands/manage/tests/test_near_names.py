"""A name that means nothing is answered with the nearest, and with a few names however many there are."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import BrokenPluginError, IncompatiblePluginError, PluginNotFoundError
from jackfield.plugins import PluginHost, ToolSpec, hook
from jackfield.settings import Settings
from jackfield_manage.judging.absences import explain_absence, misspelt_groups
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
        name: f"declares 'tool.x' in the group {group!r}, which is never read: did its authors mean 'jackfield.v1'?"
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
    assert [finding.fix for finding in found.values()] == [f"report this to the authors of {name}" for name in found]


def test_a_misspelt_kind_names_the_nearest(site: Any) -> None:
    site.add("acme", {"tol.x": "acme_light"})
    with pytest.raises(IncompatiblePluginError, match=r"did its authors mean 'tool'?"):
        site.host().find("tol", "x")
    (found,) = [finding for finding in examine(site.host()) if finding.distribution == "acme"]
    assert found.status == "incompatible"
    assert "did its authors mean 'tool'?" in found.why
    assert found.fix == "report this to the authors of acme"


def test_an_entry_point_that_names_an_object_says_what_it_must_name(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_light:tools", "tool.y": "acme_light"}, modules={"acme_light": ""})
    with pytest.raises(PluginNotFoundError, match=r"must specify a module: tool\.x = acme_light"):
        site.host().find("tool", "x")
    assert site.host().names("tool") == ["y"], "the others are there"


def misspelt(folder: Path, entry_points: str) -> list[str]:
    """Return what is said of one distribution, in a folder whose name is a pattern."""
    metadata = folder / "site[1]" / "acme-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "entry_points.txt").write_text(entry_points)
    return [problem.text for problem in misspelt_groups([str(metadata.parent)] * 2)]


@pytest.mark.parametrize(
    ("group", "is_ours"),
    [
        ("jackfeild.v1", True),
        ("jakfild", True),
        ("jackfield", True),
        ("jackfield_own_plugins", True),
        ("JackFeild.V1", True),
        ("jackson.v1", False),
        ("jupyter.v1", False),
        ("joblib", False),
    ],
)
def test_only_a_group_that_is_nearly_ours_is_misspelt(tmp_path: Path, group: str, is_ours: bool) -> None:
    text = f"declares 'tool.x' in the group {group!r}, which is never read: did its authors mean 'jackfield.v1'?"
    assert misspelt(tmp_path, f"[{group}]\ntool.x = acme\n") == ([text] if is_ours else [])


def test_only_our_kinds_are_listed_at_most_eight_and_each_group_once(tmp_path: Path) -> None:
    entries = "".join(f"tool.t{number} = acme\nother.o{number} = acme\n" for number in range(9))
    (text,) = misspelt(tmp_path, f"[console_scripts]\ntool.a = b\n[jackfeild.v1]\n{entries}")
    assert text.startswith(
        "declares 'tool.t0', 'tool.t1', 'tool.t2', 'tool.t3', 'tool.t4', 'tool.t5', 'tool.t6', 'tool.t7' in"
    )


def test_a_distribution_with_a_group_of_ours_may_have_others(tmp_path: Path) -> None:
    assert misspelt(tmp_path, "[jackfield.v1]\ntool.x = acme\n[jackfield-acme.v1]\ntool.y = acme\n") == []


def test_only_the_component_itself_explains_its_absence(site: Any) -> None:
    site.add("acme", {"tool.search_web": "acme", "tool.x": "acme"}, group="jackfeild.v1")
    assert explain_absence(site.host(), "tool", "other/x").startswith(
        ". acme declares 'tool.search_web', 'tool.x' in the group"
    )
    for kind, address in (("tool", "search"), ("tool", "web"), ("store", "x")):
        assert explain_absence(site.host(), kind, address) == ""
