"""Each plugin is judged against its neighbours: names, packages, and requirements that no version meets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from jackfield_manage.distributions import installed
from jackfield_manage.judging import neighbours
from jackfield_manage.judging.neighbours import Neighbours, _variants, differs_by_one, is_satisfiable

NAMES = st.text("ab_", min_size=1, max_size=6)


@given(NAMES, NAMES)
@example("ab", "ba")
@example("aa", "a")
def test_names_that_differ_by_one_character_share_a_variant(first: str, second: str) -> None:
    if differs_by_one(f"tool.{first}", f"tool.{second}"):
        assert _variants(f"tool.{first}") & _variants(f"tool.{second}")


@given(NAMES)
def test_names_of_two_kinds_are_never_similar(name: str) -> None:
    assert not _variants(f"tool.{name}") & _variants(f"tools.{name}")
    assert not differs_by_one(f"tool.{name}", f"tools.{name}")


@pytest.mark.parametrize(
    ("first", "second", "are_similar"),
    [("x", "y", False), ("x", "xy", False), ("csv", "tsv", False), ("csv", "csvs", True), ("cats", "hats", True)],
)
def test_short_names_do_not_imitate_each_other(first: str, second: str, *, are_similar: bool) -> None:
    assert differs_by_one(f"tool.{first}", f"tool.{second}") == are_similar


# --- requirements ---

BOUNDS = ["0", "1", "1.4", "1.4.1", "1.4.post1", "2", "2.0a1", "2.0rc1", "2.0.dev1", "3"]
CLAUSES = [
    *(f"{operator}{bound}" for operator, bound in product(["<", "<=", ">", ">=", "==", "!="], BOUNDS)),
    *(f"{operator}{bound}.*" for operator, bound in product(["==", "!="], ["0", "1", "1.4", "2"])),
    *(f"~={bound}" for bound in BOUNDS if "." in bound),
]
VERSIONS = [
    f"{major}.{minor}.{micro}{suffix}"
    for major, minor, micro, suffix in product(range(5), (0, 1, 4, 5), (0, 1), ("", "a1", "rc1", ".dev1", ".post2"))
]


@given(st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=4))
@example([">2.0a1"])
@example([">1.4.post1"])
@example(["<2.0a1", "==2.*"])
@example(["<=1", "!=1", "==1.*"])
def test_a_requirement_that_some_version_meets_contradicts_nothing(clauses: list[str]) -> None:
    specifier = SpecifierSet(",".join(clauses))
    if not is_satisfiable(specifier):
        assert not [version for version in VERSIONS if specifier.contains(version, prereleases=True)]


# --- names ---


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is in `site` is installed."""
    monkeypatch.setattr(neighbours, "installed", lambda paths: installed(paths[:1]))


def judge(host: Any, *, failed: bool = False) -> dict[str, list[tuple[str, str, str]]]:
    """Judge every component that may load, and return the verdicts by address."""
    beside = Neighbours(host)
    rows = host.policy.rows()
    return {row.address: [tuple(verdict) for verdict in beside.judge(row, failed=failed)] for row in rows}


def whys(host: Any) -> dict[str, str]:
    return {address: "; ".join(why for _, why, _ in verdicts) for address, verdicts in judge(host).items()}


def test_of_several_similar_names_all_but_the_first_are_pointed_out(site: Any) -> None:
    for name in ("one", "two", "three"):
        site.add(name, {f"tool.fetch_{name[1]}": name})
    site.add("four", {"tool.read": "four", "tool.reads": "four", "store.fetch_n": "four"})
    site.add("five", {"tool.search": "five"})
    site.add("six", {"tool.earch": "six"})
    assert {address: why for address, why in whys(site.host()).items() if why} == {
        "three/fetch_h": "the name of tool.fetch_h differs by one letter from one/fetch_n, two/fetch_w",
        "two/fetch_w": "the name of tool.fetch_w differs by one letter from three/fetch_h, one/fetch_n",
        "six/earch": "the name of tool.earch differs by one letter from five/search",
    }


@pytest.mark.parametrize(
    ("settings", "proposals"),
    [
        ({}, '"tool.x" = "one" or "tool.x" = "three" or "tool.x" = "two"'),
        ({"block": frozenset({"two"})}, '"tool.x" = "one" or "tool.x" = "three"'),
        ({"block": frozenset({"one", "two"})}, ""),
        ({"prefer": {"tool.x": "two"}}, ""),
    ],
)
def test_only_those_that_may_load_make_a_name_ambiguous(site: Any, settings: dict[str, Any], proposals: str) -> None:
    for name in ("one", "two", "three"):
        site.add(name, {"tool.x": name})
    fixes = {
        fix.partition("[prefer] ")[2] for verdicts in judge(site.host(**settings)).values() for *_, fix in verdicts
    }
    assert fixes == ({proposals} if proposals else set())


@pytest.mark.parametrize("edit", ["", "# edited"])
def test_our_own_component_is_proposed_alone_only_if_it_is_proven_to_be_ours(site: Any, edit: str) -> None:
    site.add("acme", {"tool.storage": "acme"})
    site.add("jackfield-storage", {"tool.storage": "ours"}, modules={"ours": "# sound"})
    (site.folder / "ours.py").write_text("# sound" + edit)
    ((_, why, fix),) = judge(site.host())["acme/storage"]
    assert why == "tool.storage is provided by acme/storage, jackfield-storage/storage"
    ours, theirs = '"tool.storage" = "jackfield-storage"', '"tool.storage" = "acme"'
    assert fix.partition("[prefer] ")[2] == (f"{theirs} or {ours}" if edit else ours)


@pytest.mark.parametrize(("failed", "status"), [(True, "broken"), (False, "duplicate")])
def test_a_package_that_two_own_is_named_with_the_others(site: Any, failed: bool, status: str) -> None:
    for name in ("one", "two", "three"):
        site.add(name, {f"tool.{name}": "shared.light"})
    fix = "uninstall one of them, and reinstall the other"
    assert judge(site.host(), failed=failed)["one/one"] == [
        (status, "the package 'shared' also belongs to three, two", fix)
    ]


@pytest.mark.parametrize(
    ("requires", "others"),
    [
        (["Lib>=2"], [("other", ">=2")]),
        (["lib>=1"], []),
        (["lib>=2; python_version < '3'"], []),
        (["lib>=2; extra == 'x'"], []),
        (["library>=2"], []),
    ],
)
def test_only_requirements_that_hold_here_contradict(
    site: Any, requires: Sequence[str], others: list[tuple[str, str]]
) -> None:
    site.add("acme", requires=["lib<2", "lib>=3"])
    site.add("other", requires=requires)
    assert Neighbours(site.host()).contradicting("acme", "lib", SpecifierSet("<2")) == others


def test_a_package_that_a_user_asked_for_is_not_said_to_be_required(site: Any) -> None:
    for name in ("asked", "brought"):
        metadata = site.add(name, {f"tool.{name}": name})
        (metadata / "INSTALLER").write_text("pip")
    (site.metadata("asked") / "REQUESTED").touch()
    site.add("bundle", requires=["asked", "brought"])
    beside = Neighbours(site.host())
    assert [beside.requirers_of(name) for name in ("asked", "brought", "bundle", "gone")] == [(), ("bundle",), (), ()]
