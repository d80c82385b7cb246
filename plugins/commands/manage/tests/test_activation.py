"""Why a component acts in every run, or does not: each reason is the true one."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.plugins import PluginHost, Row
from jackfield.settings import Settings
from jackfield_manage.judging.activation import (
    activation_of,
    activations,
    active_components,
    is_in_default_chain,
    names_active_by_default,
    remarks,
)
from tests.support.site import FakeSite

ENABLED = "processor.theirs/truncation"


def row_of(host: PluginHost, address: str) -> Row:
    (row,) = [row for row in host.catalog.rows if row.address == address]
    return row


@pytest.mark.parametrize(
    ("settings", "cause", "reason"),
    [
        ({}, "", "acts only if it is named in code or enabled"),
        (
            {"enabled": (ENABLED,), "origins": {f"enabled:{ENABLED}": "/srv/config.toml"}},
            "enabled",
            "acts in every run (/srv/config.toml enables it)",
        ),
        ({"enabled": (ENABLED,)}, "enabled", "acts in every run (`enabled` enables it)"),
        ({"enabled": (ENABLED,), "block": frozenset({"theirs"})}, "", "is blocked ('theirs' in `block`)"),
    ],
    ids=["not enabled", "enabled", "enabled in code", "blocked"],
)
def test_a_processor_acts_only_if_a_rule_says_so(
    site: FakeSite, settings: dict[str, Any], cause: str, reason: str
) -> None:
    site.add("theirs", {"processor.truncation": "theirs"})
    host = PluginHost(Settings(**settings), paths=[str(site.folder)])
    row = row_of(host, "theirs/truncation")
    found = activation_of(row, host)
    assert (found.cause, found.reason, found.is_active) == (cause, reason, bool(cause))
    assert activations(host) == {row: found}
    assert active_components(host) == ({row: reason} if cause else {})


def test_a_component_of_the_default_chain_says_what_takes_its_place(site: FakeSite) -> None:
    site.add("jackfield-truncation", {"processor.truncation": "ours"})
    site.add("theirs", {"processor.truncation": "theirs", "processor.other": "theirs"})
    for enabled, reason in (
        (ENABLED, "would act by default, but another 'truncation' is enabled or named and takes its place"),
        ("processor.theirs/other", "acts in every run (as part of the default chain)"),
    ):
        host = PluginHost(Settings(enabled=(enabled,)), paths=[str(site.folder)])
        assert activation_of(row_of(host, "jackfield-truncation/truncation"), host).reason == reason


def test_a_component_that_is_not_picked_by_itself_says_how_to_use_it(site: FakeSite) -> None:
    site.add("theirs", {"parser.csv": "theirs", "tool.x": "theirs"})
    host = PluginHost(Settings(), paths=[str(site.folder)])
    parser = activation_of(row_of(host, "theirs/csv"), host)
    assert parser.reason.startswith("is only used if named")
    assert parser.reason.endswith("to use it, run: jackfield plugins enable parser.theirs/csv")
    assert activation_of(row_of(host, "theirs/x"), host).reason == "may be loaded by name"
    allowed = PluginHost(Settings(enabled=("parser.theirs/csv",)), paths=[str(site.folder)])
    assert activation_of(row_of(allowed, "theirs/csv"), allowed).reason == "may be loaded by name"


def test_only_a_stranger_with_a_known_name_is_said_to_have_it(site: FakeSite) -> None:
    site.add("jackfield-truncation", {"processor.truncation": "ours"})
    site.add("theirs", {"processor.truncation": "theirs", "processor.mine": "theirs"})
    host = PluginHost(Settings(), paths=[str(site.folder)])
    same = "has the same name as a component of jackfield-truncation, but comes from theirs"
    assert same in remarks(row_of(host, "theirs/truncation"), host)
    for address in ("theirs/mine", "jackfield-truncation/truncation"):
        assert not [one for one in remarks(row_of(host, address), host) if "the same name" in one]


def test_a_component_of_the_default_chain_that_is_not_proven_says_so(site: FakeSite) -> None:
    (site.add("jackfield-truncation", {"processor.truncation": "ours"}) / "RECORD").unlink()
    site.add("theirs", {"processor.other": "theirs"})
    host = PluginHost(Settings(enabled=("processor.theirs/other",)), paths=[str(site.folder)])
    found = activation_of(row_of(host, "jackfield-truncation/truncation"), host)
    assert found.reason == "would act by default, but has no RECORD, so its owner cannot be verified"
    assert not found.is_active


def test_only_a_processor_is_part_of_the_default_chain(site: FakeSite) -> None:
    kinds = ("processor", "observer", "tool")
    site.add("jackfield-truncation", {f"{kind}.truncation": "ours" for kind in kinds})
    site.add("theirs", {"processor.other": "theirs"})
    host = PluginHost(Settings(enabled=("processor.theirs/other",)), paths=[str(site.folder)])
    assert names_active_by_default(host) == {"processor.truncation", "processor.jackfield-truncation/truncation"}
    assert [row.kind for row in host.catalog.rows if is_in_default_chain(row)] == ["processor"]
    reasons = {row.kind: activation_of(row, host).reason for row in host.catalog.of("jackfield-truncation")}
    assert reasons == {
        "processor": "acts in every run (as part of the default chain)",
        "observer": "acts only if it is named in code or enabled",
        "tool": "may be loaded by name",
    }
