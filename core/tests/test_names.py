"""Names of the package `jackfield`: its own, those of other packages, and those of submodules."""

from __future__ import annotations

from typing import Any

import pytest

import jackfield


def test_each_public_name_is_there_and_listed() -> None:
    assert sorted(dir(jackfield)) == sorted(jackfield.__all__)
    for name in jackfield.__all__:
        assert getattr(jackfield, name) is getattr(jackfield, name)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("Assistant", ImportError, "jackfield has no 'Assistant': write `from jackfield_assistant import Assistant`"),
        ("BaseToool", AttributeError, "module 'jackfield' has no attribute 'BaseToool'; did you mean 'BaseTool'?"),
        ("_private", AttributeError, "module 'jackfield' has no attribute '_private'"),
        ("a.b", AttributeError, "module 'jackfield' has no attribute 'a.b'"),
        ("", AttributeError, "module 'jackfield' has no attribute ''"),
    ],
)
def test_a_name_of_another_package_is_told_and_a_misspelt_one_is_suggested(name: str, kind: Any, said: str) -> None:
    with pytest.raises(kind) as caught:
        getattr(jackfield, name)
    assert str(caught.value).startswith(said)
    assert not (kind is AttributeError and hasattr(jackfield, name))
