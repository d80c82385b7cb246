"""Rules about plugins: a refusal names its rule and the rule's origin, and which packages are considered."""

from __future__ import annotations

from typing import Any

import pytest

from jackfield.errors import IncompatiblePluginError, PluginBlockedError
from jackfield.plugins import Settings, ToolSpec, hook


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"safe": True, "origins": {"safe": "JACKFIELD_SAFE"}}, "does not load in safe mode (JACKFIELD_SAFE)"),
        ({"safe": True}, "does not load in safe mode (safe)"),
        (
            {"block": frozenset({"acme/x"}), "origins": {"block:acme/x": "config.toml"}},
            "is blocked ('acme/x' in config.toml)",
        ),
        ({"block": frozenset({"tool.x"})}, "is blocked ('tool.x' in `block`)"),
        ({"block": frozenset({"acme", "tool.x"})}, "is blocked ('acme' in `block`)"),
        (
            {"allow": frozenset({"other"}), "origins": {"allow": "config.toml"}},
            "is not in the list of allowed packages (config.toml)",
        ),
        ({"allow": frozenset[str]()}, "is not in the list of allowed packages (`allow`)"),
        ({"allow": frozenset({"acme"}), "block": frozenset({"acme"})}, "is blocked ('acme' in `block`)"),
    ],
)
def test_a_reason_names_the_rule_and_where_it_is_from(site: Any, settings: dict[str, Any], reason: str) -> None:
    site.add_tools("acme", "x")
    host = site.host(**settings)
    [row] = host.catalog.rows
    assert host.policy.why_not(row) == reason
    with pytest.raises(PluginBlockedError) as caught:
        host.find("tool", "x")
    assert str(caught.value) == f"tool 'acme/x' {reason}"


def test_what_is_allowed_but_not_proven_is_told_how_to_prove_itself(site: Any) -> None:
    site.add_tools("acme", "x")
    (site.metadata("acme") / "RECORD").unlink()
    host = site.host(allow=frozenset({"acme"}), origins={"allow": "config.toml"})
    with pytest.raises(PluginBlockedError) as caught:
        host.find("tool", "x")
    assert str(caught.value) == (
        "tool 'acme/x' has no RECORD, so its owner cannot be verified, so it is not accepted as the allowed package "
        "acme (config.toml): pip install --force-reinstall acme"
    )


_UNMATCHED = "matches no installed plugin; "


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("acme-shell", ""),
        ("Acme_Shell", ""),
        ("tool.run", ""),
        ("Acme.Shell/run", ""),
        ("searcher.any", ""),  # acme-find may offer it when it is asked
        ("acme-find/any", ""),
        ("acme-odd", ""),  # its metadata is malformed, so it provides nothing, but it is installed
        ("acme-shel", f"{_UNMATCHED}did you mean 'acme-shell' or 'acme-shell/run'?"),
        ("run", f"{_UNMATCHED}did you mean 'tool.run'?"),
        ("tool.Acme_Shell/run", ""),
        ("searcher.acme-find/any", ""),
        ("searcher.acme-shell/run", f"{_UNMATCHED}did you mean 'tool.run'?"),
        ("tool.ran", f"{_UNMATCHED}did you mean 'tool.run'?"),
        ("acme-shell/any", f"{_UNMATCHED}did you mean 'acme-shell/run' or 'acme-shell'?"),
        ("zzz", f"{_UNMATCHED}to list them, run: jackfield plugins list"),
    ],
)
def test_a_name_to_block_that_matches_nothing_is_reported_with_close_names(site: Any, name: str, reason: str) -> None:
    site.add_tools("acme-shell", "run")
    site.add("acme-find", {"searcher.*": "acme_find"}, modules={"acme_find": ""})
    site.add("acme-odd", {"no kind": "acme_odd"}, modules={"acme_odd": ""})
    assert site.host().policy.unmatched(name) == reason


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("tol", "is of kind 'tol', which this core does not know: did its authors mean 'tool'?"),
        ("gizmo", "is of kind 'gizmo', which this core does not know"),
    ],
)
def test_an_unknown_kind_is_told_what_is_close(site: Any, kind: str, said: str) -> None:
    site.add("acme", {f"{kind}.x": "m"})
    with pytest.raises(IncompatiblePluginError) as caught:
        site.host().find(kind, "x")
    assert str(caught.value) == f"{kind} 'acme/x' {said}"


UNCHOSEN = (
    "is only used if named explicitly, because acme is a third-party package; to use it, run: jackfield plugins enable"
)


@pytest.mark.parametrize(
    ("settings", "is_chosen"),
    [
        ({}, False),
        ({"allow": frozenset({"acme"})}, True),
        ({"enabled": ("tool.acme/x",)}, True),
        ({"enabled": ("tool.acme/*",)}, True),
        ({"enabled": ("searcher.acme/x",)}, False),
        ({"enabled": ("tool.acme/y",)}, False),
        ({"prefer": {"tool.anything": "Acme"}}, True),
        ({"prefer": {"searcher.x": "acme"}}, False),
        ({"allow": frozenset({"acme"}), "unnarrowed": Settings()}, False),
    ],
    ids=str,
)
def test_a_package_of_others_is_considered_once_the_users_rules_name_it(
    site: Any, settings: dict[str, Any], is_chosen: bool
) -> None:
    site.add_tools("acme", "x")
    host = site.host(**settings)
    [row] = host.catalog.rows
    assert host.policy.why_unconsidered(row) == ("" if is_chosen else f"{UNCHOSEN} tool.acme/x")
    assert host.considered("tool") == ([row] if is_chosen else [])
    assert host.policy.left_out("tool") == ({} if is_chosen else {row: f"{UNCHOSEN} tool.acme/x"})


@pytest.mark.parametrize(
    "rules",
    [{"block": frozenset({"acme"})}, {"block": frozenset({"tool.x"})}, {"safe": True}, {"allow": frozenset({"other"})}],
    ids=str,
)
def test_a_package_that_may_not_load_is_not_among_those_that_only_need_to_be_named(
    site: Any, rules: dict[str, Any]
) -> None:
    site.add_tools("acme", "x")
    host = site.host(**rules)
    assert host.policy.left_out("tool") == {}
    assert host.considered("tool") == []


def test_what_a_program_registers_needs_not_be_named(site: Any) -> None:
    host = site.host()
    host.register(_Offers(), name="given")
    [row] = [row for row in host.policy.rows("tool") if row.name == "mine"]
    assert host.policy.why_unconsidered(row) == ""
    assert host.policy.unproven(row) == ""
    assert host.find("tool", "mine") == row
    site.add_tools("acme", "zzz", "aaa")
    host.refresh()
    assert host.names("tool") == ["aaa", "mine", "zzz"]


class _Offers:
    @hook.tools
    def tools(self) -> list[ToolSpec]:
        return [ToolSpec(name="mine", target=f"{__name__}:nothing", description="Mine.")]
