"""The lock of an installation: its versions, the Python versions it supports, its rules, and notes about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jackfield.settings import Settings
from jackfield_manage.installing.lock import Frozen, Policy, freeze
from jackfield_manage.installing.lockfile import as_toml, parse_lock
from tests.support.site import FakeSite


def frozen(site: FakeSite, **settings: Any) -> Frozen:
    return freeze(Settings(**settings), [str(site.folder)])


def test_the_core_has_its_own_entry_and_the_version_that_is_installed(site: FakeSite) -> None:
    site.add("jackfield", {"tool.core": "nowhere"}, version="9.01", requires=["lib[fast]"])
    site.add("lib", requires=["deep", "quick; extra == 'fast'"])
    site.add("deep")
    site.add("quick", requires=["jackfield"])
    lock = frozen(site).lock
    assert (lock.core, lock.plugins) == ("9.1", ())
    assert lock.requirements == {"deep": "1.0", "lib": "1.0", "quick": "1.0"}
    assert parse_lock(as_toml(lock), "it") == lock


@pytest.mark.parametrize(
    ("supported", "combined"),
    [
        ([], ""),
        ([">=3.9", ">=3.10"], ">=3.10"),  # as versions: as texts, 3.9 would be the higher one
        ([">=3.11,<4", ">=3.9,!=3.12.1"], ">=3.11,!=3.12.1,<4"),
        (["<4", "three", "~=3.11"], "<4,~=3.11"),
    ],
)
def test_the_python_versions_of_a_lock_are_those_that_all_support(
    supported: list[str], combined: str, site: FakeSite
) -> None:
    for number, versions in enumerate(supported):
        metadata = site.add(f"acme{number}", {f"tool.x{number}": "nowhere"})
        with (metadata / "METADATA").open("a") as file:
            file.write(f"Requires-Python: {versions}\n")
    assert frozen(site).lock.requires_python == combined


def test_rules_have_an_order_that_no_run_changes(site: FakeSite) -> None:
    names = [f"acme-{letter}" for letter in "hgfedcba"]
    policy = frozen(site, allow=frozenset(names), block=frozenset(names)).lock.policy
    assert policy.allow == policy.block == tuple(reversed(names))
    assert frozen(site, allow=frozenset()).lock.policy.allow == ()
    assert frozen(site).lock.policy.allow is None


def test_rules_about_sources_of_components_can_be_read_again(site: FakeSite) -> None:
    rules = ("acme/*", "tool.*", "tool.acme/*")
    lock = frozen(site, block=frozenset(rules), enabled=rules[2:]).lock
    assert parse_lock(as_toml(lock), "it").policy == Policy(block=rules, enabled=rules[2:])


def test_a_note_names_what_the_lock_leaves_out(site: FakeSite) -> None:
    site.add("acme", {"tool.*": "nowhere", "tool.c": "nowhere"}, requires=["odd"])
    site.add("odd", version="one")
    site.add("odder", {"tool.d": "nowhere"}, version="latest")
    lock, notes = frozen(site).lock, frozen(site).notes
    assert [(plugin.name, plugin.ids) for plugin in lock.plugins] == [("acme", ("tool.*", "tool.c"))]
    assert lock.requirements == {}
    assert notes == ("odder is omitted: 'latest' is not a valid version",)
    assert parse_lock(as_toml(lock), "it") == lock


def test_a_note_names_at_most_five_edited_files(site: FakeSite) -> None:
    site.add("acme", {"tool.x": "nowhere"}, modules={f"acme_{letter}": "" for letter in "fedcba"})
    for file in Path(site.folder).glob("acme_?.py"):
        file.unlink()
    (note,) = frozen(site).notes
    assert note.endswith(f"the original: {', '.join(f'acme_{letter}.py (missing)' for letter in 'abcde')}")
