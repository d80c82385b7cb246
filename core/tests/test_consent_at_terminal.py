"""Consent at a terminal: a user is asked once, and without a terminal no question is asked."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from jackfield.cli import with_consent
from jackfield.consent import Request, StartsProcess, is_agreed
from jackfield.errors import ConsentNeededError
from tests.support.command_line import Tty


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "agent.yaml"
    file.write_text("x")
    return Request(file, (StartsProcess("sh\x1b[2J"),), "content")


def terminal(
    monkeypatch: pytest.MonkeyPatch, typed: str, *, is_input: bool = True, is_error: bool = True
) -> io.StringIO:
    stdin = Tty(typed) if is_input else io.StringIO(typed)
    stderr = Tty() if is_error else io.StringIO()
    monkeypatch.setattr("jackfield.cli._consent.sys", SimpleNamespace(stdin=stdin, stderr=stderr))
    return stderr


def work_on(request: Request) -> str:
    from jackfield.consent import require_consent

    require_consent(request)
    return "done"


@pytest.mark.parametrize("typed", ["y\n", "YES\n", " y \n"])
def test_a_user_at_the_terminal_is_asked_once(request_: Request, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = terminal(monkeypatch, typed)
    assert with_consent(lambda: work_on(request_)) == "done"
    assert told.getvalue().endswith("Allow this until the file changes? [y/N] ")
    assert "sh\\x1b[2J" in told.getvalue()
    assert "--trust" not in told.getvalue(), "the last line is for those who cannot be asked"
    assert is_agreed(request_)
    assert with_consent(lambda: work_on(request_)) == "done"
    assert told.getvalue().count("[y/N]") == 1


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yesterday\n"])
def test_anything_else_is_no(request_: Request, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, typed)
    with pytest.raises(ConsentNeededError):
        with_consent(lambda: work_on(request_))
    assert not is_agreed(request_)


@pytest.mark.parametrize(("is_input", "is_error"), [(False, True), (True, False)], ids=["piped in", "piped out"])
def test_without_a_terminal_nobody_is_asked(
    request_: Request, is_input: bool, is_error: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = terminal(monkeypatch, "y\n", is_input=is_input, is_error=is_error)
    with pytest.raises(ConsentNeededError):
        with_consent(lambda: work_on(request_))
    assert told.getvalue() == ""


def test_content_that_needs_consent_again_is_not_asked_about_twice(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = terminal(monkeypatch, "y\ny\ny\n")

    def always_needed() -> str:
        raise ConsentNeededError(request_.path, ["starts sh"], request_)

    with pytest.raises(ConsentNeededError):
        with_consent(always_needed)
    assert told.getvalue().count("[y/N]") == 1
