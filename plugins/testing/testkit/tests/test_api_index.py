"""The index of the core's names is the core's, and what a plugin uses is held against it."""

from __future__ import annotations

import ast

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from jackfield_manage.judging.used_names import running_nodes
from jackfield_testkit.api_index import floor_of, index_for, unknown_names

INDEX = {"acme": ["x"], "jackfield": ["Agent", "events"], "jackfield.events": ["TextDelta"]}


@pytest.mark.parametrize(
    ("source", "unknown"),
    [
        ("from jackfield import Agent, events", []),
        ("from jackfield.events import TextDelta", []),
        ("from jackfield.events import Later", ["jackfield.events.Later"]),
        ("from jackfield.later import Thing", ["jackfield.later.Thing"]),
        ("from jackfield.events import _private", ["jackfield.events._private"]),
        ("from jackfield import __version__", []),
        ("import jackfield.later", ["jackfield.later"]),
        ("import jackfield.events as ev\nev.TextDelta\nev.TextDelta.text", []),
        ("import jackfield.events as ev\nev.Later", ["jackfield.events.Later"]),
        ("import jackfield\njackfield.events.TextDelta\njackfield.Agent", []),
        ("import jackfield\njackfield.events.Later", ["jackfield.events.Later"]),
        ("def f():\n    from jackfield.events import Later", ["jackfield.events.Later"]),
        ("if TYPE_CHECKING:\n    from jackfield.events import Later", []),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from jackfield.events import Later", ["jackfield.events.Later"]),
        ("from jackfield_acme import Later\nimport acme\nacme.Later", []),
    ],
)
def test_a_name_that_the_core_does_not_have_is_found(source: str, unknown: list[str]) -> None:
    assert list(dict.fromkeys(unknown_names(running_nodes(ast.parse(source)), INDEX))) == unknown


@pytest.mark.parametrize(
    ("requirement", "floor"),
    [
        ("jackfield>=0.1,<2", "0.1"),
        ("jackfield~=1.4.2", "1.4.2"),
        ("jackfield==1.2.*", "1.2"),
        ("jackfield>=1.0,>=1.4", "1.4"),
        ("jackfield<2", None),
        ("jackfield", None),
    ],
)
def test_the_floor_of_a_requirement_is_its_highest_lower_bound(requirement: str, floor: str | None) -> None:
    found = floor_of(Requirement(requirement))
    assert found == (None if floor is None else Version(floor))


def test_a_floor_has_the_names_of_its_minor_version() -> None:
    first: dict[str, list[str]] = {"jackfield": ["a"]}
    second: dict[str, list[str]] = {"jackfield": ["a", "b"]}
    known = {Version("0.1"): first, Version("0.3"): second}
    assert index_for(Version("0.1.9"), known) is first
    assert index_for(Version("0.2"), known) is first
    assert index_for(Version("0.3.1"), known) is second
    assert index_for(Version("0.4"), known) is None
    with pytest.raises(LookupError, match=r"the first version is 0\.1"):
        index_for(Version("0.0.9"), known)
