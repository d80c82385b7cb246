"""Flags before a command: each becomes a variable of the environment, where child processes see it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from jackfield.cli import main
from jackfield.errors import ConfigError
from tests.support.site import FakeSite

POLICY = ("JACKFIELD_PLUGINS", "JACKFIELD_PLUGINS_BLOCK", "JACKFIELD_SAFE", "JACKFIELD_PLUGINS_STRICT",
          "JACKFIELD_PLUGINS_TRACE")  # fmt: skip


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The flags before a command change the environment for good."""
    before = dict(os.environ)
    for name in POLICY:
        monkeypatch.delenv(name, raising=False)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    ("words", "rest", "changes"),
    [
        (["run", "--strict"], ["run", "--strict"], {}),
        (["--no-plugins", "run"], ["run"], {"JACKFIELD_SAFE": "1"}),
        (["--strict", "--trace"], [], {"JACKFIELD_PLUGINS_STRICT": "1", "JACKFIELD_PLUGINS_TRACE": "1"}),
        (["--plugins", "a,b", "run"], ["run"], {"JACKFIELD_PLUGINS": "a,b"}),
        (["--plugins=a", "--plugins", "b", "x"], ["x"], {"JACKFIELD_PLUGINS": "b"}),
        (["--block=a", "--block", "b", "x"], ["x"], {"JACKFIELD_PLUGINS_BLOCK": "a,b"}),
        (["--plugins=", "x"], ["x"], {"JACKFIELD_PLUGINS": ""}),
        (["--version", "--strict"], ["--version", "--strict"], {}),
    ],
)
def test_flags_before_the_command_become_the_environment(
    words: list[str], rest: list[str], changes: dict[str, str]
) -> None:
    assert main._apply_policy_flags(words)[0] == rest
    assert {name: os.environ[name] for name in POLICY if name in os.environ} == changes


def test_block_adds_to_the_environment_and_plugins_replaces_it() -> None:
    os.environ |= {"JACKFIELD_PLUGINS": "old", "JACKFIELD_PLUGINS_BLOCK": "old"}
    main._apply_policy_flags(["--block", "new", "--plugins", "new"])
    assert (os.environ["JACKFIELD_PLUGINS"], os.environ["JACKFIELD_PLUGINS_BLOCK"]) == ("new", "old,new")


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        (["--block", "acme, gone", "--block=other,"], ["gone", "other"]),
        (["--block", "acme", "--plugins", "gone"], []),
    ],
)
def test_each_blocked_name_that_matches_nothing_is_told(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str],
    unknown: list[str],
) -> None:  # fmt: skip
    site.add_tools("acme", "x")
    blocked = main._apply_policy_flags(words)[1]
    monkeypatch.setattr("jackfield.plugins._host.default_host", site.host)
    main._report_unknown(blocked)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" matches")[0] for line in lines] == [f"jackfield: --block {name!r}" for name in unknown]
    monkeypatch.setattr("jackfield.plugins._host.default_host", lambda: site.host(strict=True))
    if unknown:
        with pytest.raises(ConfigError, match=f"--block '{unknown[0]}' matches no installed plugin"):
            main._report_unknown(blocked)
    else:
        main._report_unknown(blocked)


@pytest.mark.parametrize("flag", ["--plugins", "--block"])
def test_a_flag_without_its_value_is_an_error(flag: str) -> None:
    with pytest.raises(ConfigError, match=f"{flag} needs a value: names separated by commas"):
        main._apply_policy_flags([flag])
