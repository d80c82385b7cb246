"""The catalog: what is installed, from metadata alone, whatever the neighbours look like."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import importlib_metadata
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.plugins import Catalog, scan
from jackfield.plugins._catalog import GROUP
from jackfield.settings import normalise

Listed = set[tuple[str, str, str, str]]


def ours(catalog: Catalog) -> Listed:
    return {(row.id, row.module, row.distribution, row.version) for row in catalog.rows if row.api == 1}


def theirs(paths: list[str] | None = None) -> Listed:
    """What `importlib_metadata` says, as slowly as it likes."""
    found: Listed = set()
    seen: set[str] = set()
    options: dict[str, Any] = {} if paths is None else {"path": paths}
    for distribution in importlib_metadata.distributions(**options):
        name = normalise(distribution.metadata["Name"])
        if name in seen:
            continue
        seen.add(name)
        found |= {
            (entry.name, entry.value, name, distribution.version)
            for entry in distribution.entry_points
            if entry.group == GROUP
        }
    return found


def test_the_scan_says_of_this_environment_what_importlib_metadata_says() -> None:
    assert ours(scan()) == theirs()


names = st.from_regex(r"[a-z][a-z0-9]{0,3}([-_.][a-z0-9]{1,3})?", fullmatch=True)
entries = st.dictionaries(
    st.builds(
        "{}.{}".format,
        st.sampled_from(["tool", "llm", "gadget"]),
        st.from_regex(r"[a-z][a-z0-9_.-]{0,5}", fullmatch=True),
    ),
    st.from_regex(r"[a-z_]{1,4}(\.[a-z_]{1,4})?", fullmatch=True),
    max_size=3,
)
environments = st.dictionaries(
    names.map(normalise), st.tuples(entries, st.sampled_from(["1.0", "0.1.dev3+g12"])), max_size=4
)
TEMPLATES = (
    "[{group}]\n{lines}",
    "# a comment\r\n\r\n[{group}]\r\n{lines}\r\n",
    "[console_scripts]\nx = y:z\n\n[{group}]\n\n# here\n{lines}\n[other]\ntool.no = no\n",
)


@given(environments, st.sampled_from(TEMPLATES))
def test_the_scan_says_of_any_environment_what_the_standard_library_says(
    environment: Mapping[str, tuple[Mapping[str, str], str]], template: str
) -> None:
    with TemporaryDirectory() as folder:
        for name, (offered, version) in environment.items():
            metadata = Path(folder, f"{name.replace('-', '_')}-{version}.dist-info")
            metadata.mkdir()
            (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            lines = "".join(f"{entry} = {module}\n" for entry, module in offered.items())
            (metadata / "entry_points.txt").write_bytes(template.format(group=GROUP, lines=lines).encode())
        catalog = scan([folder])
        assert ours(catalog) == theirs([folder])
        assert catalog.problems == ()


def test_rows_come_in_the_order_of_kind_name_and_distribution(site: Any) -> None:
    site.add("zeta", {"tool.a": "z", "llm.b": "z"})
    site.add("alpha", {"tool.a": "a", "tool.c": "a"})
    rows = scan([str(site.folder)]).rows
    assert [(row.id, row.distribution) for row in rows] == [
        ("llm.b", "zeta"),
        ("tool.a", "alpha"),
        ("tool.a", "zeta"),
        ("tool.c", "alpha"),
    ]


def test_a_row_knows_its_address_and_where_it_is(site: Any) -> None:
    location = site.add("Acme_Search.Tools", {"tool.web.search": "acme.plugin"}, version="2.1")
    (row,) = scan([str(site.folder)]).rows
    assert (row.kind, row.name, row.module, row.version) == ("tool", "web.search", "acme.plugin", "2.1")
    assert row.address == "acme-search-tools/web.search"
    assert Path(row.location).samefile(location)


@pytest.mark.parametrize("folder", ["Acme__Tools", "acme..tools", "ACME._.Tools", "acme_tools"])
def test_a_row_has_the_one_name_of_its_distribution_however_its_folder_spells_it(site: Any, folder: str) -> None:
    metadata = site.folder / f"{folder}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_bytes(b"[jackfield.v1]\ntool.x = x\n")
    (row,) = scan([str(site.folder)]).rows
    assert row.distribution == normalise(folder) == "acme-tools"


# --- hostile neighbours ---

HOSTILE = {
    "no name": b"[jackfield.v1]\n= module\n",
    "no target": b"[jackfield.v1]\ntool.x\n",
    "no kind": b"[jackfield.v1]\nx = module\n",
    "no module": b"[jackfield.v1]\ntool.x = not a module\n",
    "a class": b"[jackfield.v1]\ntool.x = module:Class\n",
    "a shell": b"[jackfield.v1]\ntool.x = $(reboot)\n",
    "not UTF-8": b"[jackfield.v1]\ntool.x = \xff\xfe\n",
    "huge": b"[jackfield.v1]\n" + b"#" * (1 << 20) + b"\ntool.x = module\n",
    "a terminal's codes": b"[jackfield.v1]\ntool.\x1b[31m = module\n",
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_malformed_neighbour_is_a_problem_and_costs_nobody_else_a_name(site: Any, raw: bytes) -> None:
    site.add("hostile", raw=raw)
    site.add("sound", {"tool.good": "good"})
    catalog = scan([str(site.folder)])
    assert [row.id for row in catalog.rows] == ["tool.good"]
    assert {problem.distribution for problem in catalog.problems} == {"hostile"}


@given(st.binary(max_size=200))
def test_no_bytes_in_a_neighbours_file_make_the_scan_fail(junk: bytes) -> None:
    with TemporaryDirectory() as folder:
        for name, raw in (("hostile", b"[jackfield.v1]\n" + junk), ("sound", b"[jackfield.v1]\ntool.good = good\n")):
            metadata = Path(folder, f"{name}-1.0.dist-info")
            metadata.mkdir()
            (metadata / "entry_points.txt").write_bytes(raw)
        rows = scan([folder]).rows
    assert [row.id for row in rows if row.distribution == "sound"] == ["tool.good"]


def test_metadata_of_older_tools_count_as_well(site: Any) -> None:
    metadata = site.add("older", {"tool.good": "good"})
    metadata.rename(site.folder / "older-1.0.egg-info")
    assert [row.id for row in scan([str(site.folder)]).rows] == ["tool.good"]


def test_good_lines_beside_a_bad_one_count(site: Any) -> None:
    site.add("mixed", raw=b"[jackfield.v1]\ntool.good = good\nbad line\n")
    catalog = scan([str(site.folder)])
    assert [row.id for row in catalog.rows] == ["tool.good"]
    assert [problem.distribution for problem in catalog.problems] == ["mixed"]


def test_a_neighbour_without_a_readable_file_is_no_row_and_no_failure(site: Any) -> None:
    (site.folder / "empty-1.0.dist-info").mkdir()
    site.add("other", raw="[console_scripts]\ncaf\u00e9 = other:main\n".encode())
    (site.folder / "file-1.0.dist-info").write_text("not a folder")
    (site.folder / "loop-1.0.dist-info").symlink_to(site.folder / "loop-1.0.dist-info")
    assert scan([str(site.folder)]) == Catalog((), ())


GARBAGE = {
    "not UTF-8": b"[console_scripts]\nx = \xff\xfe\n",
    "no group": b"this is no file of entry points\n",
    "no brackets": b"jackfield.v1\ntool.x = acme\n",
    "UTF-16": "[jackfield.v1]\ntool.x = x\n".encode("utf-16"),
    "UTF-16 without a mark": "[jackfield.v1]\ntool.x = x\n".encode("utf-16-le"),
    "a byte order mark": b"\xef\xbb\xbf[jackfield.v1]\ntool.x = x\n",
    "noise": bytes(range(256)) * 10,
    "more than a megabyte": b"# filler\n" * 130_000 + b"[jackfield.v1]\ntool.x = x\n",
}


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_in_a_neighbours_file_is_reported(site: Any, raw: bytes) -> None:
    site.add("garbled", raw=raw)
    site.add("sound", {"tool.good": "good"})
    catalog = scan([str(site.folder)])
    assert [row.id for row in catalog.rows] == ["tool.good"]
    assert [problem.distribution for problem in catalog.problems] == ["garbled"]
    assert "entry_points.txt" in catalog.problems[0].text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_what_is_in_the_place_of_a_neighbours_file_is_reported(site: Any) -> None:
    for name in ("folder", "link", "odd@name"):
        (site.folder / f"{name}-1.0.dist-info").mkdir()
    (site.folder / "folder-1.0.dist-info/entry_points.txt").mkdir()
    for name in ("link", "odd@name"):
        (site.folder / f"{name}-1.0.dist-info/entry_points.txt").symlink_to("nowhere")
    problems = scan([str(site.folder)]).problems
    assert {one.distribution for one in problems} == {"folder", "link", "odd@name"}
    assert all("cannot be read" in one.text for one in problems)


def test_an_entry_for_another_major_is_listed_with_it(site: Any) -> None:
    site.add("newer", {"tool.x": "x"}, group="jackfield.v2")
    assert [row.api for row in scan([str(site.folder)]).rows] == [2]


@pytest.mark.parametrize("group", ["jackfield", "jackfield.v", "jackfield.v1x", "xjackfield.v1", "jackfield.v1.more"])
def test_a_group_of_another_name_is_not_ours(site: Any, group: str) -> None:
    site.add("other", {"tool.x": "x"}, group=group)
    assert scan([str(site.folder)]).rows == ()


@pytest.mark.parametrize("path", ["/nowhere/at/all", "\0", "not/a/zip.zip", b"/bytes", Path("/nowhere")])
def test_an_odd_entry_of_the_path_makes_the_scan_miss_nothing_else(site: Any, path: Any) -> None:
    site.add("sound", {"tool.good": "good"})
    assert [row.id for row in scan([path, str(site.folder)]).rows] == ["tool.good"]


def test_the_empty_entry_is_the_working_directory(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("sound", {"tool.good": "good"})
    monkeypatch.chdir(site.folder)
    assert [row.id for row in scan([""]).rows] == ["tool.good"]


# --- archives ---


@pytest.mark.parametrize("archive", ["plugins.zip", "acme-1.0-py3-none-any.whl"])
def test_a_distribution_in_an_archive_on_the_path_is_found(site: Any, archive: str) -> None:
    path = site.add_zip(archive, "acme", {"tool.zipped": "acme.plugin"})
    catalog = scan([str(path)])
    assert [(row.id, row.distribution, row.version) for row in catalog.rows] == [("tool.zipped", "acme", "1.0")]
    assert ours(catalog) == theirs([str(path)])


@pytest.mark.parametrize("name", ["acme_eggs-1.0-py3.11.egg", "acme_eggs-1.0.egg"])
@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_distribution_in_an_egg_on_the_path_is_found(tmp_path: Path, name: str, is_zipped: bool) -> None:
    files = {
        "PKG-INFO": "Metadata-Version: 1.2\nName: acme-eggs\nVersion: 1.0\n",
        "entry_points.txt": "[jackfield.v1]\ntool.egg = acme_eggs\n",
    }
    egg = tmp_path / name
    if is_zipped:
        with zipfile.ZipFile(egg, "w") as archive:
            for file, text in files.items():
                archive.writestr(f"EGG-INFO/{file}", text)
    else:
        (egg / "EGG-INFO").mkdir(parents=True)
        for file, text in files.items():
            (egg / "EGG-INFO" / file).write_text(text)
    catalog = scan([str(egg)])
    assert ours(catalog) == theirs([str(egg)]) == {("tool.egg", "acme_eggs", "acme-eggs", "1.0")}
    assert [row.location for row in catalog.rows] == [str(egg / "EGG-INFO")]


def test_an_archive_is_named_as_what_it_is_however_its_path_is_written(site: Any, tmp_path: Path) -> None:
    path = site.add_zip("acme.zip", "acme", {"tool.zipped": "acme.plugin"})
    (tmp_path / "link.zip").symlink_to(path)
    catalog = scan([str(tmp_path / "link.zip"), str(path)])
    assert [row.location for row in catalog.rows] == [f"{path}/acme-1.0.dist-info"]
    assert catalog.problems == ()


def test_a_broken_archive_costs_its_own_names(site: Any) -> None:
    (site.folder / "broken.zip").write_bytes(b"PK\x03\x04 and nothing more")
    site.add("sound", {"tool.good": "good"})
    catalog = scan([str(site.folder / "broken.zip"), str(site.folder)])
    assert [row.id for row in catalog.rows] == ["tool.good"]


# --- the same twice ---


def test_of_a_distribution_on_the_path_twice_the_first_counts_and_the_other_is_told(site: Any, tmp_path: Path) -> None:
    site.add("acme", {"tool.x": "first"})
    later = tmp_path / "later"
    (later / "acme-2.0.dist-info").mkdir(parents=True)
    (later / "acme-2.0.dist-info/entry_points.txt").write_bytes(b"[jackfield.v1]\ntool.x = second\n")
    catalog = scan([str(site.folder), str(later)])
    assert [row.module for row in catalog.rows] == ["first"]
    assert [(problem.distribution, "twice" in problem.text) for problem in catalog.problems] == [("acme", True)]


def test_a_folder_on_the_path_twice_is_read_once(site: Any, tmp_path: Path) -> None:
    site.add("acme", {"tool.x": "first"})
    (tmp_path / "link").symlink_to(site.folder)
    catalog = scan([str(site.folder), str(tmp_path / "link"), str(site.folder) + os.sep])
    assert len(catalog.rows) == 1
    assert catalog.problems == ()


def test_a_name_that_one_distribution_gives_twice_is_its_problem_and_not_a_choice(site: Any) -> None:
    site.add("acme", raw=b"[jackfield.v1]\ntool.x = first\ntool.x = second\n")
    catalog = scan([str(site.folder)])
    assert [row.module for row in catalog.rows] == ["first"]
    assert [problem.distribution for problem in catalog.problems] == ["acme"]


# --- texts and boundaries ---


def problem_of(site: Any, raw: bytes) -> str:
    site.add("acme", raw=raw)
    catalog = scan([str(site.folder)])
    [problem] = catalog.problems
    assert (problem.distribution, catalog.rows) == ("acme", ())
    assert Path(problem.location).samefile(site.metadata("acme"))
    return problem.text


ONE_MIB = 1 << 20
PROBLEMS = {
    "an object": (
        b"[jackfield.v1]\ntool.x = acme.light:Tool\n",
        "specifies the object 'Tool' for tool.x, but must specify a module: tool.x = acme.light",
    ),
    "an object without a kind": (
        b"[jackfield.v1]\nx = acme:Tool\n",
        "entry_points.txt contains an invalid line: 'x = acme:Tool'",
    ),
    "an object in no module": (
        b"[jackfield.v1]\ntool.x = a b:Tool\n",
        "entry_points.txt contains an invalid line: 'tool.x = a b:Tool'",
    ),
    "a long line": (b"[jackfield.v1]\n" + b"x" * 201, f"entry_points.txt contains an invalid line: '{'x' * 200}'"),
    "a long kind": (
        b"[jackfield.v1]\n" + b"k" * 65 + b".x = m",
        f"entry_points.txt contains an invalid line: '{'k' * 65}.x = m'",
    ),
    "too large": (
        b"[jackfield.v1]\n#" + b"x" * ONE_MIB,
        "entry_points.txt is larger than 1 MiB",
    ),
    "a byte order mark": (
        b"\xef\xbb\xbf[jackfield.v1]\ntool.x = x\n",
        "entry_points.txt starts with a byte order mark, so its first group was skipped",
    ),
    "a NUL": (b"[a]\0", "entry_points.txt contains a NUL byte, so its components were skipped"),
    "text": (b" hello", "entry_points.txt does not start with a group, so its components were skipped"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_problem_says_what_is_wrong(site: Any, case: str) -> None:
    raw, text = PROBLEMS[case]
    assert problem_of(site, raw) == text


@pytest.mark.parametrize(
    "raw",
    [b"", b"\n", b"# ours\n", b"; ours\n", b"\xef\xbb\xbf[console_scripts]\nx = y:z\n", "[a]\nx = é\n".encode()],
    ids=["empty", "blank", "comment", "other comment", "mark of another group", "umlaut"],
)
def test_a_file_without_our_group_is_no_problem(site: Any, raw: bytes) -> None:
    site.add("acme", raw=raw)
    assert scan([str(site.folder)]) == Catalog((), ())


@pytest.mark.parametrize("size", [ONE_MIB, ONE_MIB + 1])
def test_a_file_of_a_megabyte_counts_and_a_larger_one_does_not(site: Any, size: int) -> None:
    lines = b"[jackfield.v1]\ntool.x = x\n#"
    site.add("acme", raw=lines + b" " * (size - len(lines)))
    catalog = scan([str(site.folder)])
    assert (len(catalog.rows), len(catalog.problems)) == ((1, 0) if size == ONE_MIB else (0, 1))


def test_comments_end_no_group_and_another_group_does(site: Any) -> None:
    site.add("acme", raw=b"[jackfield.v1]\n# a\n; b\n\ntool.x = x\n[other]\nnot for us\n[jackfield.v2]\ntool.x = y\n")
    catalog = scan([str(site.folder)])
    assert [(row.id, row.module, row.api) for row in catalog.rows] == [("tool.x", "x", 1), ("tool.x", "y", 2)]
    assert catalog.problems == ()


@pytest.mark.parametrize(
    ("folder", "shown", "text"),
    [
        ("acme-1.0 x", "acme", "is not a valid package name and version: 'acme-1.0 x'"),
        ("-acme-1.0", "", "is not a valid package name and version: '-acme-1.0'"),
        ("b@d-1.0", "b@d", "is not a valid package name and version: 'b@d-1.0'"),
        (f"{'a' * 130}@-1", "a" * 80, f"is not a valid package name and version: '{'a' * 120}'"),
        (f"acme-{'1' * 65}", "acme", f"is not a valid package name and version: 'acme-{'1' * 65}'"),
    ],
)
def test_a_folder_that_names_no_package_is_a_problem(site: Any, folder: str, shown: str, text: str) -> None:
    (site.folder / f"{folder}.dist-info").mkdir()
    (site.folder / f"{folder}.dist-info/entry_points.txt").write_bytes(b"[jackfield.v1]\ntool.x = x\n")
    catalog = scan([str(site.folder)])
    assert [(one.distribution, one.text) for one in catalog.problems] == [(shown, text)]
    assert catalog.rows == ()


def test_two_of_one_name_come_in_the_order_of_their_normalised_distributions(site: Any) -> None:
    for name in ("Beta", "alpha"):  # the folder of the first comes first
        site.add(name, {"tool.a": "m"})
    assert [row.distribution for row in scan([str(site.folder)]).rows] == ["alpha", "beta"]


def test_the_problem_of_a_second_installation_names_the_one_in_use(site: Any, tmp_path: Path) -> None:
    first = site.add("acme", {"tool.x": "m"})
    later = tmp_path / "later/acme-2.0.dist-info"
    later.mkdir(parents=True)
    (later / "entry_points.txt").write_bytes(b"[jackfield.v1]\ntool.x = second\n")
    [problem] = scan([str(site.folder), str(later.parent)]).problems
    assert problem == ("acme", f"is installed twice; using {first}", str(later), str(first), False)


def test_the_problem_of_a_broken_archive_names_it(site: Any) -> None:
    path = site.folder / "broken.zip"
    path.write_bytes(b"PK\x03\x04 and nothing more")
    [problem] = scan([str(path)]).problems
    assert (problem.distribution, problem.location) == ("broken.zip", str(path))
    assert problem.text.startswith("cannot be read: ")


def test_a_folder_that_has_gone_is_no_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert scan([""]) == Catalog((), ())
