"""Verdicts of the doctor, one at a time: which problem of a probe becomes which status, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield_manage.distributions import Distribution
from jackfield_manage.judging.findings import Finding, Verdict
from jackfield_manage.judging.results import failed
from jackfield_manage.judging.verdicts import (
    SLOW_MS,
    WAITED_MS,
    _judge_loading,
    _judge_machine,
    _judge_requirements,
    judge_blocked,
    shorten,
)

ROWS: Sequence[Any] = [
    SimpleNamespace(id="tool.acme", distribution="acme", is_installed=True, module="acme.plugin", location="/srv/acme")
]
REPORT = "report this to the authors of acme"


def loading(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> list[Verdict]:
    monkeypatch.setattr("jackfield_manage.judging.verdicts.package_of", lambda row: "acme")
    neighbours: Any = SimpleNamespace(installation={}, contradicting=lambda *_: [])
    return list(_judge_loading(ROWS, {**failed(), "offered": ["tool.acme"], **changes}, neighbours))


@pytest.mark.parametrize(
    ("changes", "verdicts"),
    [
        ({}, []),
        ({"misfits": [("a name is gone", "pip install x")]}, [("broken", "a name is gone", "pip install x")]),
        (
            {"misfits": [("a name is gone", "pip install x")], "errors": ["it fails"]},
            [("broken", "a name is gone", "pip install x")],
        ),
        (
            {"errors": ["it fails", "again"]},
            [("broken", "it fails", "pip install --upgrade acme, or pip uninstall acme")],
        ),
        (
            {"offered": ["tool.acme", "tool.b", "tool.a"]},
            [("undeclared", "it declares no entry point for tool.a, tool.b, which therefore cannot be found", REPORT)],
        ),
        (
            {"specs": {"tool.acme": {"extra": ["sumary"]}}},
            [
                (
                    "undeclared",
                    "tool.acme sets sumary, which this version of jackfield does not support and ignores; did its "
                    "authors mean 'summary'?",
                    REPORT,
                )
            ],
        ),
        (
            {"specs": {"tool.acme": {"extra": ["zz", "yy"]}}},
            [
                (
                    "undeclared",
                    "tool.acme sets yy, zz, which this version of jackfield does not support and ignores",
                    f"pip install --upgrade jackfield, or {REPORT}",
                )
            ],
        ),
        ({"specs": {"tool.acme": {"extra": []}}}, []),
        ({"ms": SLOW_MS}, []),
        (
            {"ms": SLOW_MS + 1},
            [("slow", "its light module takes too long to load", f"{REPORT}: a light module should take 5 ms")],
        ),
        (
            {"ms": SLOW_MS + 1, "imported": ["numpy.core", "json", "jackfield.x", "pluggy", "acme.tool"]},
            [("slow", "its light module imports numpy", f"{REPORT}: a light module imports none of these")],
        ),
        (
            {"imported": [f"m{number}.x" for number in range(7)]},
            [
                (
                    "slow",
                    "its light module imports m0, m1, m2, m3, m4",
                    f"{REPORT}: a light module imports none of these",
                )
            ],
        ),
        ({"waited_ms": WAITED_MS}, []),
        (
            {"waited_ms": 1300},
            [("slow", "its light module spends 1.3 s waiting", f"{REPORT}: a light module should never wait")],
        ),
        (
            {"effects": ["it prints 'hello'", "it writes"]},
            [("slow", "importing it has a side effect: it prints 'hello'", f"{REPORT}, or block it")],
        ),
    ],
    ids=lambda value: "-".join(value) or "nothing" if isinstance(value, dict) else "",
)
def test_what_loading_shows_becomes_a_verdict(
    changes: dict[str, Any], verdicts: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loading(monkeypatch, **changes) == verdicts


def test_what_the_machine_lacks_becomes_a_verdict() -> None:
    host: Any = SimpleNamespace(settings=SimpleNamespace(secret=lambda name: name == "SET"))
    result = {**failed(), "checks": ["no bwrap"], "secrets": ["SET", "ONE", "TWO"]}
    assert list(_judge_machine(result, host)) == [
        ("broken", "no bwrap", "fix this, then run the check again"),
        ("ok", "not set: ONE, TWO", "set the key for each service that you use"),
    ]
    assert list(_judge_machine({**failed(), "secrets": ["ONE", "TWO"]}, host)) == [
        ("ok", "not set: ONE, TWO", "set the key for each service that you use"),
    ]
    assert list(_judge_machine({**failed(), "secrets": ["ONE"]}, host)) == [
        ("ok", "not set: ONE", "set ONE to use it, unless your server or model needs no key"),
    ]
    assert list(_judge_machine({**failed(), "secrets": ["SET"]}, host)) == []


def installation(**versions: str) -> dict[str, Distribution]:
    return {name: Distribution(name, version, f"/srv/{name}") for name, version in versions.items()}


def requirements(requires: Sequence[str], others: Sequence[tuple[str, str]] = (), **versions: str) -> list[Verdict]:
    def contradicting(distribution: str, required: str, _specifier: object) -> Sequence[tuple[str, str]]:
        assert (distribution, required in versions) == ("acme", True)
        return others

    neighbours: Any = SimpleNamespace(installation=installation(**versions), contradicting=contradicting)
    return list(_judge_requirements(Distribution("acme", "1", "/srv/acme", tuple(requires)), neighbours))


@pytest.mark.parametrize(
    ("requires", "verdicts"),
    [
        (["other"], []),
        (["other>=1,<3"], []),
        (["other>=2rc1"], []),
        (["gone"], [("broken", "it requires gone, which is not installed", "pip install --upgrade acme")]),
        (["gone; python_version < '3'"], []),
        (["gone; extra == 'x'"], []),
        (["gone @@ nonsense"], []),
        (
            ["Other>3"],
            [("broken", "it requires Other>3, but 2.0rc1 is installed", "pip install --upgrade acme 'Other>3'")],
        ),
    ],
)
def test_requirements_that_are_not_met_are_broken_and_prereleases_count(
    requires: list[str], verdicts: list[tuple[str, str, str]]
) -> None:
    assert requirements(requires, other="2.0rc1") == verdicts


def test_two_that_contradict_each_other_are_both_named() -> None:
    (verdict,) = requirements(["other>3"], [("b", "<2"), ("c", "<1")], other="2.0")
    assert verdict.status == "broken"
    assert verdict.why == (
        "it requires other>3, but 2.0 is installed, while b requires other<2 and c requires other<1: "
        "no version satisfies both"
    )
    assert verdict.fix.startswith("pip install --upgrade acme b c; ")
    assert verdict.fix.endswith("pip uninstall acme")


@pytest.mark.parametrize(
    ("paths", "shown"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
)
def test_three_paths_are_named(paths: list[str], shown: str) -> None:
    assert shorten(paths) == shown


def test_the_worst_problem_comes_first_and_faults_are_what_cannot_work() -> None:
    order = ["broken", "changed", "inactive", "ok"]
    verdicts = [Verdict(status, "why", "") for status in reversed(order)]  # type: ignore[arg-type]
    assert [verdict.status for verdict in sorted(verdicts, key=lambda one: one.severity)] == order
    faults = {"ambiguous", "broken", "malformed"}
    for status in ("ok", "inactive", "blocked", "incompatible", "undeclared", "slow", "duplicate", "vanished", *faults):
        finding = Finding("acme", "1", (), status)  # type: ignore[arg-type]
        assert finding.is_fault is (status in faults)
    assert Verdict("ok", "why", "fix").line() == "why → fix"
    assert Verdict("ok", "why", "").line() == "why"


@pytest.mark.parametrize(
    ("reason", "local", "api", "verdict"),
    [
        (
            "is blocked in config.toml",
            (),
            "",
            ("blocked", "is blocked in config.toml", "change the rule there, or run: jackfield plugins enable acme"),
        ),
        (
            "has a group that is never read: did its authors mean 'jackfield.v1'?",
            (),
            "",
            ("incompatible", "has a group that is never read: did its authors mean 'jackfield.v1'?", REPORT),
        ),
        (
            "is made for v2",
            (),
            "jackfield.v2",
            ("incompatible", "is made for v2", "pip install --upgrade jackfield acme"),
        ),
        (
            "cannot be read",
            (SimpleNamespace(name="acme", fault="cannot be read"),),
            "",
            ("broken", "cannot be read", "fix /srv/acme, or correct `local`"),
        ),
        (
            "is blocked",
            (SimpleNamespace(name="acme", fault=""), SimpleNamespace(name="other", fault="is gone")),
            "",
            ("blocked", "is blocked", "change the rule there, or run: jackfield plugins enable acme"),
        ),
    ],
    ids=["blocked", "misspelt", "incompatible", "local", "others"],
)
def test_what_may_not_load_is_told_with_its_reason(
    reason: str, local: Any, api: str, verdict: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_manage.judging.verdicts.is_incompatible", lambda row: bool(api))
    host: Any = SimpleNamespace(
        policy=SimpleNamespace(why_not=lambda row: reason), settings=SimpleNamespace(local=local)
    )
    row: Any = SimpleNamespace(distribution="acme", location="/srv/acme")
    assert judge_blocked(row, host) == verdict
