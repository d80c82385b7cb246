"""A secret is one in any case; a name that stands for a folder is not."""

from __future__ import annotations

import pytest

from jackfield_testkit.redaction import SECRET, Redaction


@pytest.mark.parametrize("form", [str.upper, str.lower, str.swapcase])
def test_a_secret_is_taken_out_in_any_case(form: object) -> None:
    redaction = Redaction(["Mark-ed/Secret+7"], {"/srv/Folder": "{folder}"})
    assert callable(form)
    assert (
        redaction.text(f"a {form('Mark-ed/Secret+7')} b /srv/Folder /SRV/FOLDER")
        == f"a {SECRET} b {{folder}} /SRV/FOLDER"
    )
    assert redaction.pieces([form("Mark-ed"), form("/Secret+7")]) == [SECRET, ""]
