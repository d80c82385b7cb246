"""What a light module says, read without running it: the truth or nothing, whatever the file is."""

from __future__ import annotations

import py_compile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.plugins import ToolSpec
from jackfield_manage.judging.source import described_in_source, descriptors_in, source_file

texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)
literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)


def write(folder: Path, source: str) -> Path:
    path = folder / "light.py"
    path.write_text(source, encoding="utf-8")
    return path


@given(values=st.dictionaries(st.sampled_from(["summary", "extra", "secrets", "parameters"]), literals, max_size=4))
def test_literal_values_are_read_as_python_would_make_them(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]
) -> None:
    arguments = "".join(f", {key}={value!r}" for key, value in values.items())
    source = f"def tools():\n    return [ToolSpec(name='x'{arguments})]\n"
    (found,) = descriptors_in(write(tmp_path_factory.mktemp("s"), source))
    assert (found.kind, found.unknown) == ("tool", ())
    assert found.values == {"name": "x", **values}


@pytest.mark.parametrize(
    "more", ["**{'effects': {'network'}}", "**OTHER", "**made()", "**made(), **{'secrets': ('A',)}"]
)
def test_what_two_stars_bring_is_unknown_however_it_is_written(tmp_path: Path, more: str) -> None:
    source = f"OTHER = {{'effects': {{'network'}}}}\nspec = ToolSpec(name='x', {more})"
    (found,) = descriptors_in(write(tmp_path, source))
    assert (dict(found.values), set(found.unknown)) == ({"name": "x"}, {"**"})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("NAME", "search"),
        ("NAME + '_web'", "search_web"),
        ("f'{NAME} the web'", "search the web"),
        ("('a', *MORE)", ("a", "b", "c")),
        ("MORE + ('d',)", ("b", "c", "d")),
        ("'a b c'.split()", ["a", "b", "c"]),
        ("frozenset({'network'})", frozenset({"network"})),
        ("set(('files',))", {"files"}),
        ("{**TABLE, **TABLE, 'b': 2}", {"a": 1, "b": 2}),
        ("-1.5", -1.5),
        ("NAME + ' ' + NAME", "search search"),
        ("f'{NAME} {N}'", "search 2"),
        ("[*MORE, N]", ["b", "c", 2]),
        ("NAME.split()", ["search"]),
        ("tuple()", ()),
    ],
)
def test_constants_of_the_module_and_their_sums_are_read(tmp_path: Path, expression: str, value: Any) -> None:
    (found,) = descriptors_in(write(tmp_path, f"{CONSTANTS}spec = ToolSpec(name='x', extra={expression})"))
    assert found.values["extra"] == value == eval(expression, constants())
    assert type(found.values["extra"]) is type(value)


CONSTANTS = "NAME = 'search'\nN = 2\nMORE: tuple[str, ...] = ('b', 'c')\nTABLE = {'a': 1}\n"


def constants() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(CONSTANTS, names)
    return names


@pytest.mark.parametrize(
    "expression",
    [
        "secret()",
        "NAME.upper()",
        "TWICE",
        "ROUND",
        "os.environ['HOME']",
        "[x for x in 'abc']",
        "{'a': [1]}[0]",
        "{[1]}",
        "{[1]: 1}",
        "'a' * 10**9",
        "9 ** 9 ** 9",
        "absent",
        "frozenset(1)",
        "frozenset('a', 'b')",
        "dict('a')",
        "dict(TABLE, 'a')",
        "1 if True else 2",
        "'a' + 1",
        "1 + 2",
        "MORE + ['d']",
        "f'{NAME!r}'",
        "f'{N:03}'",
        "f'{MORE}'",
        "[*NAME]",
        "[*TABLE]",
        "{**MORE}",
        "+1",
        "~1",
        "-NAME",
        "NAME.split('e')",
        "MORE.split()",
    ],
)
def test_what_is_computed_stays_unknown_and_is_named(tmp_path: Path, expression: str) -> None:
    more = "TWICE = 1\nTWICE = 2\nROUND = ROUND2\nROUND2 = ROUND\n"
    (found,) = descriptors_in(write(tmp_path, f"{CONSTANTS}{more}spec = ToolSpec(name='x', extra={expression})"))
    assert (dict(found.values), found.unknown) == ({"name": "x"}, ("extra",))


@pytest.mark.parametrize("expression", ["+".join(["'a'"] * 5000), "(" * 90 + ")" * 90])
def test_what_is_nested_deeply_is_read_or_unknown(tmp_path: Path, expression: str) -> None:
    found = descriptors_in(write(tmp_path, f"spec = ToolSpec(name='x', extra={expression})"))
    assert all("extra" not in one.values or one.values["extra"] in ((), "a" * 5000) for one in found)
    assert [one.unknown for one in found] in ([], [("extra",)], [()])


@pytest.mark.parametrize(("too_many", "found"), [(0, 1), (1, 0)])
def test_a_file_is_read_up_to_a_mebibyte(tmp_path: Path, too_many: int, found: int) -> None:
    source = "spec = ToolSpec(name='x')\n"
    path = write(tmp_path, source + "#" * ((1 << 20) - len(source) + too_many))
    assert len(descriptors_in(path)) == found


def test_of_two_descriptors_with_one_name_the_kind_decides(site: Any) -> None:
    source = (
        "StoreSpec(name='x', summary='A store.')\nToolSpec(name='y', summary='Y.')\nToolSpec(name='x', summary='X.')"
    )
    site.add("acme", {"tool.x": "acme_light", "store.x": "acme_light"}, modules={"acme_light": source})
    for kind, summary in (("tool", "X."), ("store", "A store.")):
        found = described_in_source(site.host().find(kind, "x"), [str(site.folder)])
        assert found is not None
        assert (found.kind, found.values["summary"]) == (kind, summary)


@pytest.mark.parametrize("mode", list(PycInvalidationMode))
def test_a_source_counts_only_if_python_would_compare_it_with_its_bytecode(
    site: Any, mode: PycInvalidationMode
) -> None:
    path = site.folder / "acme_light.py"
    path.write_text("ToolSpec(name='x')")
    py_compile.compile(str(path), invalidation_mode=mode)
    assert source_file("acme_light") == (path if mode is PycInvalidationMode.TIMESTAMP else None)


def test_an_extension_module_and_a_folder_have_no_source(site: Any) -> None:
    (site.folder / "acme_folder").mkdir()
    (site.folder / f"acme_native{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    assert source_file("acme_folder") is None
    assert source_file("acme_native") is None


def test_nothing_of_a_file_runs(site: Any) -> None:
    module = site.add_tools("acme", "search", before="raise SystemExit('it ran')")
    described = described_in_source(site.host().find("tool", "search"), [str(site.folder)])
    assert module
    assert site.times_imported("acme") == 0
    assert described is None  # the names are computed there: it cannot be told which descriptor is whose


def test_packages_above_the_light_module_do_not_run_either(site: Any) -> None:
    site.add("acme", {"tool.x": "acme_pkg.light"}, modules={
        "acme_pkg.__init__": "raise SystemExit('it ran')",
        "acme_pkg.light": "ToolSpec(name='x', summary='One line.')",
    })  # fmt: skip
    found = described_in_source(site.host().find("tool", "x"), [str(site.folder)])
    assert found is not None
    assert found.values["summary"] == "One line."


@pytest.mark.parametrize(
    "content", [b"", b"def (", b"\xff\xfe\0", b"\0", b"x = " + b"(" * 5000, b"# coding: no-such\n", b"[" * 10**5]
)
def test_a_file_that_is_no_python_describes_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "light.py"
    path.write_bytes(content)
    assert descriptors_in(path) == []


@pytest.mark.parametrize("module", ["not.there", "json.tool.deeper", "..", "", "a" * 5000, "sys", "nul\0"])
def test_a_module_that_is_not_there_has_no_file(module: str) -> None:
    assert source_file(module) is None


def test_what_is_read_is_what_the_host_is_told(site: Any) -> None:
    site.add("acme", {"tool.x": "light"}, modules={"light": """
from jackfield.plugins import ToolSpec, hook
KEYS = ("ACME_KEY",)

@hook.tools
def tools():
    return [
        ToolSpec(
            name="x", target="light:T", description={"en": "Does it."}, secrets=KEYS, network=("a.example",),
            effects=frozenset({"network"}), parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
        )
    ]
"""})  # fmt: skip
    host = site.host()
    row = host.find("tool", "x")
    described = described_in_source(row, [str(site.folder)])
    spec = host.spec_of(row, ToolSpec)
    assert described is not None
    assert described.unknown == ()
    assert {name: getattr(spec, name) for name in described.values} == dict(described.values)
