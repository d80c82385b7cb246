"""Metadata of installed distributions: read as it is written, and without a fault that a broken one could cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jackfield_manage.distributions import (
    Distribution,
    installed,
    read_distribution,
    required_by,
    requirements_of,
)


def write(folder: Path, name: str = "acme", headers: str = "", *, version: str = "1.0", **files: str) -> str:
    metadata = folder / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{headers}\nName: of-the-readme\n"
    (metadata / "METADATA").write_text(text, newline="")
    for file, content in files.items():
        (metadata / file.replace("_json", ".json")).write_text(content)
    return str(metadata)


def read(folder: Path, name: str = "acme", headers: str = "", **files: str) -> Distribution:
    distribution = read_distribution(write(folder, name, headers, **files))
    assert distribution is not None
    return distribution


def test_the_first_on_the_path_wins_and_names_are_normalised(tmp_path: Path) -> None:
    write(tmp_path / "a", "Acme_Tools", version="2.0")
    write(tmp_path / "b", "acme.tools", version="1.0")
    write(tmp_path / "b", "other", version="3.0")
    found = installed([str(tmp_path / folder) for folder in ("gone", "a", "b", "a")])
    assert {name: one.version for name, one in found.items()} == {"acme-tools": "2.0", "other": "3.0"}


@pytest.mark.parametrize("text", ["", "Name: a\n", "Version: 1\n", "Name:\nVersion: 1\n", "\n\nName: a\nVersion: 1\n"])
def test_what_has_no_name_or_no_version_is_left_out(tmp_path: Path, text: str) -> None:
    metadata = tmp_path / "a-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(text)
    assert read_distribution(str(metadata)) is None
    assert installed([str(tmp_path)]) == {}


def test_headers_are_read_with_the_line_ends_of_any_system_and_not_on_into_the_readme(tmp_path: Path) -> None:
    headers = "Requires-Dist: b >=1 \nProvides-Extra: Big_One\nRequires-Python: >=3.11\nLicense: long text\n"
    for number, ends in enumerate(("\n", "\r\n")):
        location = write(tmp_path / str(number), headers=headers)
        text = (Path(location) / "METADATA").read_text()
        (Path(location) / "METADATA").write_text(text, newline=ends)
        assert read_distribution(location) == Distribution(
            "acme", "1.0", location, requires=("b >=1",), extras=("big-one",), requires_python=">=3.11",
            licence="long text",
        )  # fmt: skip


def test_the_expression_of_a_licence_wins_over_its_text_and_neither_is_long(tmp_path: Path) -> None:
    assert read(tmp_path / "a", headers="License: The MIT License\nLicense-Expression: MIT\n").licence == "MIT"
    assert read(tmp_path / "b", headers=f"License: {'x' * 300}\n").licence == "x" * 200


@pytest.mark.parametrize(
    ("files", "installer", "requested"),
    [
        ({}, "", None),
        ({"INSTALLER": "pip\n"}, "pip", False),
        ({"INSTALLER": "pip\n", "REQUESTED": ""}, "pip", True),
        ({"INSTALLER": "uv", "REQUESTED": ""}, "uv", None),
        ({"INSTALLER": "x" * 100}, "x" * 64, None),
    ],
)
def test_only_pip_records_what_was_asked_for_by_name(
    tmp_path: Path, files: dict[str, str], installer: str, requested: bool | None
) -> None:
    distribution = read(tmp_path, **files)
    assert (distribution.installer, distribution.requested) == (installer, requested)


@pytest.mark.parametrize(
    ("text", "editable"),
    [
        ('{"dir_info": {"editable": true}}', True),
        ('{"dir_info": {"editable": "true"}}', False),
        ('{"dir_info": {"editable": 1}}', False),
        ('{"dir_info": []}', False),
        ("[]", False),
        ("{", False),
        ("[" * 100_000, False),
    ],
    ids=range(7),
)
def test_an_editable_installation_says_so_in_so_many_words(tmp_path: Path, text: str, editable: bool) -> None:
    distribution = read(tmp_path, direct_url_json=text)
    assert distribution.editable is editable
    if text[0] == "{" and text != "{":
        assert distribution.direct == json.loads(text)


# --- requirements ---

REQUIRES = (
    "always>=1",
    "never; python_version < '3'",
    "extra-a; extra == 'a'",
    "both; extra == 'a' or python_version >= '3'",
    "extra-b; extra == \"b\" and python_version >= '3'",
    "not a requirement at all",
    "unknown; no_such_marker == '1'",
)


@pytest.mark.parametrize(
    ("extra", "names"), [("", ["always", "both"]), ("a", ["extra-a"]), ("b", ["extra-b"]), ("c", [])]
)
def test_an_extra_has_its_additions_only(extra: str, names: list[str]) -> None:
    distribution = Distribution("acme", "1", "", requires=REQUIRES, extras=("a", "b"))
    assert [requirement.name for requirement in requirements_of(distribution, extra)] == names


@pytest.mark.parametrize(
    ("requires", "requiring"),
    [
        ("Dep", ["acme"]),
        ("d_e_p", []),
        ("dep>=2", ["acme"]),
        ("dep; python_version < '3'", []),
        ("dep; extra == 'a'", ["acme[a]"]),
        ("dep; extra == 'A' and python_version >= '3'", ["acme[a]"]),
        ("dep; extra == 'a' or extra == 'b'", ["acme[a]", "acme[b]"]),
        ("dep; extra == 'a' or python_version >= '3'", ["acme"]),
        ("dep; python_version >= '3' or extra == 'a'", ["acme"]),
        ("dep; 'b' == extra", ["acme[b]"]),
        ("dep; no_such_marker == '1'", []),
        ("?", []),
    ],
)
def test_who_requires_a_distribution_is_named_with_the_extra(requires: str, requiring: list[str]) -> None:
    acme = Distribution("acme", "1", "", requires=(requires,), extras=("a", "b"))
    assert required_by("dep", {"acme": acme}) == requiring


def test_those_that_require_it_are_sorted_and_each_is_named_once_but_never_itself() -> None:
    table = {
        name: Distribution(name, "1", "", requires=("dep", "dep>1", "dep; extra == 'x'"), extras=("x",))
        for name in ("zoo", "dep", "acme")
    }
    assert required_by("dep", table) == ["acme", "acme[x]", "zoo", "zoo[x]"]
    assert required_by("nobody", table) == []
