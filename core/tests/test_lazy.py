"""What has left the core is found where it says, or the error says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackfield._lazy import method_of
from jackfield.errors import ConfigError


def test_a_method_whose_package_is_missing_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="`ask_twice` needs jackfield-gone: pip install jackfield-gone"):
        method_of("jackfield_gone.asking", "ask_twice")(object())


def test_what_a_package_itself_lacks_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "jackfield_torn.py").write_text("import what_it_needs\n", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match="what_it_needs"):
        method_of("jackfield_torn", "ask")()
