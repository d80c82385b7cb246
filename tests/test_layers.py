"""The core stands alone, imports point down, and importing does nothing."""

from __future__ import annotations

import ast
import graphlib
import importlib
import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

# Reports what a statement does to the world. It runs with -B: a bytecode file is written by Python, not by the module.
WATCHED_IMPORT = """
import _thread, json, os, sys
seen = []
def watch(event, arguments):
    if event == "open":
        writing = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writing:
            seen.append([event, str(arguments[0])])
    elif event in ("os.putenv", "os.unsetenv", "os.mkdir", "os.remove", "os.rename") or (
        event.split(".")[0] in ("socket", "subprocess", "urllib", "sqlite3", "ctypes", "signal")
        # The socket module asks for a number when it is imported; that is no connection.
        and event not in ("socket.gethostname", "ctypes.dlopen", "ctypes.dlsym")
    ):
        seen.append([event, str(arguments)[:200]])
before = set(sys.modules)
sys.addaudithook(watch)
exec(sys.argv[1])
if _thread._count():  # an audit event tells of new threads from Python 3.12 on only
    seen.append(["thread", str(_thread._count())])
print(json.dumps({"seen": seen, "modules": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture
def watched(execute: Callable[..., Any], clean_env: dict[str, str], tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Runs a statement in a fresh interpreter; gives what it did to the world, and the modules it loaded."""

    def watch(statement: str) -> dict[str, Any]:
        done = execute([sys.executable, "-B", "-c", WATCHED_IMPORT, statement], cwd=tmp_path, env=clean_env)
        return dict(json.loads(done.stdout.splitlines()[-1]))

    return watch


def test_the_watcher_sees_what_a_bad_import_would_do(watched: Callable[[str], dict[str, Any]]) -> None:
    did = watched(
        "open('left-behind', 'w').close(); import socket, threading; socket.socket().close()\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    assert {event for event, _ in did["seen"]} == {"open", "socket.__new__", "thread"}


def test_importing_jackfield_loads_next_to_nothing_of_ours_and_nothing_of_others(
    watched: Callable[[str], dict[str, Any]],
) -> None:
    did = watched("import jackfield")
    assert did["seen"] == []
    assert [name for name in did["modules"] if name.split(".")[0] not in sys.stdlib_module_names] == [
        "jackfield",
        "jackfield.version",
    ]
    assert len(did["modules"]) <= 12, did["modules"]


@pytest.mark.parametrize(
    ("statement", "spared"),
    [
        (
            "import jackfield; jackfield.FnCallAgent()",
            {
                "tomllib",
                "mimetypes",
                "argparse",
                "jackfield_manage.judging.requirements",
                "jackfield_manage.judging.source",
            },
        ),
        (
            "from jackfield.cli.main import main; main(['plugins', 'list'])",
            {"tomllib", "traceback", "unicodedata", "shutil", "pydantic", "asyncio", "jackfield.config"},
        ),
    ],
)
def test_what_begins_often_loads_nothing_that_it_seldom_needs(
    watched: Callable[[str], dict[str, Any]], statement: str, spared: set[str]
) -> None:
    assert spared.isdisjoint(watched(statement)["modules"])


def test_importing_every_public_name_changes_nothing_outside(watched: Callable[[str], dict[str, Any]]) -> None:
    did = watched("from jackfield import *\nfrom jackfield.models import *\nfrom jackfield.plugins import *")
    assert did["seen"] == []


@pytest.mark.parametrize("line", [["--version"], ["--help"], ["plugins", "list"]], ids=" ".join)
def test_a_command_that_loads_no_plugin_loads_nothing_heavy(
    watched: Callable[[str], dict[str, Any]], distributions: list[Any], line: list[str]
) -> None:
    did = watched(
        "import contextlib, io\n"
        "from jackfield.cli.main import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main({line!r})"
    )
    loaded = {name.split(".")[0] for name in did["modules"]}
    assert loaded.isdisjoint({one.package for one in distributions[1:]})
    assert loaded.isdisjoint({"pydantic", "jsonschema", "pluggy", "asyncio"})
    assert did["seen"] == []


def test_the_layers_hold(execute: Callable[..., Any], root: Path) -> None:
    execute([Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=root)


def test_every_distribution_has_its_layer(root: Path, distributions: list[Any]) -> None:
    linter = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = [one["layers"] for one in linter["contracts"] if "jackfield" in one.get("layers", ())]
    packages = sorted(one.package for one in distributions)
    assert sorted(linter["root_packages"]) == packages
    assert sorted(re.findall(r"\w+", " ".join(layers))) == packages


Imports = Mapping[Path, list[tuple[str, int]]]


@pytest.fixture(scope="module")
def imports(once: Callable[..., Any], distributions: list[Any]) -> Imports:
    """Every module (and every name taken from one) that each of our files imports anywhere, with its line."""

    def read() -> dict[str, list[tuple[str, int]]]:
        return {str(path): list(imports_of(path)) for one in distributions for path in files_of(one)}

    return {Path(path): [(name, line) for name, line in found] for path, found in once("imports", read).items()}


def test_a_distribution_imports_only_what_it_declares_hidden_imports_included(
    imports: Imports, distributions: list[Any]
) -> None:
    undeclared = [
        f"{path}:{line} imports {name}"
        for one in distributions
        for allowed in [allowed_in(one, distributions)]
        for path in files_of(one)
        for name, line in imports[path]
        if (top := name.split(".")[0]) not in allowed and top not in beside_a_script(path)
    ]
    assert undeclared == []


def allowed_in(distribution: Any, distributions: list[Any]) -> set[str]:
    """The modules at the top that a distribution may import."""
    allowed = {distribution.package, "jackfield"} | set(sys.stdlib_module_names) | modules_of(distribution.requirements)
    required = {requirement_name(text) for text in distribution.requirements}
    return allowed | {one.package for one in distributions if one.name in required}  # they may be installed as folders


MAY_NAME_PACKAGES = {"defaults.py", "hookspecs.py"}
OTHER_DISTRIBUTION = re.compile(r"\bjackfield[_-][a-z]")
NAMES_OF_THREADS = {"jackfield-loop", "jackfield-worker"}
LOOK_UP_BY_NAME = {  # tables of public names; targets that a plugin or a user names; finding without importing
    "__init__.py", "cli/__init__.py", "plugins/__init__.py", "descriptors.py", "plugins/_host.py",
    "plugins/_loading.py", "plugins/_imports.py",
}  # fmt: skip


def test_the_core_names_no_other_distribution_outside_its_defaults(distributions: list[Any]) -> None:
    core = distributions[0].source
    named = [
        f"{path}:{line} has {text!r}"
        for path in files_of(distributions[0])
        if path.relative_to(core).as_posix() not in MAY_NAME_PACKAGES
        for text, line in strings_of(ast.parse(path.read_text(encoding="utf-8")))
        if OTHER_DISTRIBUTION.search(text) and text not in NAMES_OF_THREADS
    ]
    assert named == []


def test_only_tables_and_loaders_of_the_core_look_modules_up_by_name(distributions: list[Any]) -> None:
    core = distributions[0].source
    paths = {
        path.relative_to(core).as_posix()
        for path in files_of(distributions[0])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _is_import_call(node.func)
    }
    assert paths == LOOK_UP_BY_NAME


def test_names_and_strings_are_seen_wherever_they_are_written() -> None:
    source = """
'''pip install jackfield-openai'''
from importlib import import_module
def load(name):
    '''Load `jackfield_openai`.'''
    return import_module("jackfield_openai"), f"jackfield_openai.{name}", {"key": ["jackfield-openai"]}
"""
    texts = [text for text, _ in strings_of(ast.parse(source))]
    assert texts.count("jackfield_openai") == 1
    assert {"jackfield_openai.", "jackfield-openai"} <= set(texts)
    assert "pip install jackfield-openai" not in texts


@pytest.mark.parametrize("package", ["jackfield", "jackfield.plugins", "jackfield.cli"])
def test_the_table_of_public_names_is_what_type_checkers_read(package: str, distributions: list[Any]) -> None:
    path = distributions[0].source.parent / package.replace(".", "/") / "__init__.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = [
        node for node in tree.body if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    ]
    shown = {
        alias.asname or alias.name: f"{node.module}.{alias.name}" if alias.asname else node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    module = importlib.import_module(package)
    assert shown == module._MODULES
    assert set(module.__all__) - {"__version__"} == set(shown)


def test_no_module_needs_one_that_needs_it_hidden_imports_included(imports: Imports, distributions: list[Any]) -> None:
    # All distributions together, so that none reaches back through another one.
    modules = {
        ".".join(path.relative_to(one.source.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for one in distributions
        for path in files_of(one)
    }
    needs = {
        name: {found for wanted, _ in imports[path] if (found := owning(wanted, modules)) and found != name}
        for name, path in modules.items()
    }
    with_a_package = {name: {one for one in wanted if not name.startswith(f"{one}.")} for name, wanted in needs.items()}
    sorter = graphlib.TopologicalSorter(with_a_package)
    sorter.prepare()  # raises CycleError, which names the modules


def test_the_core_declares_no_vendor_sdk_and_no_http_client(distributions: list[Any]) -> None:
    core = {requirement_name(text) for text in distributions[0].metadata["project"]["dependencies"]}
    assert core <= {
        "pluggy", "pydantic", "jsonschema", "referencing", "importlib-metadata", "typing-extensions",
    }  # fmt: skip


def test_each_dependency_of_the_core_has_a_reason(root: Path, distributions: list[Any]) -> None:
    text = (root / "core/pyproject.toml").read_text(encoding="utf-8")
    reasons = dict(re.findall(r'^  "([^"]+)",  # (.{20,})$', text, re.MULTILINE))
    assert reasons.keys() == set(distributions[0].metadata["project"]["dependencies"])


def test_no_plugin_imports_a_private_name_of_the_core_or_another_plugin(
    imports: Imports, distributions: list[Any]
) -> None:
    # A library has no entry point, and is there to be imported.
    plugins = {one.package for one in distributions[1:] if one.entry_points}
    own = {one.package: {one.package} for one in distributions}
    # The kit's laws about loading are the doctor's, and its suite of faces runs them as `jackfield serve` does.
    own["jackfield_testkit"] |= {"jackfield_manage", "jackfield_serve"}
    wrong = [
        f"{path} imports {name} in line {line}"
        for one in distributions[1:]
        for path in files_of(one)
        for name, line in imports[path]
        if name.split(".")[0] in plugins - own[one.package]
        or (name.startswith("jackfield") and any(map(is_private, name.split("."))))
    ]
    assert wrong == []


def test_a_light_module_imports_the_standard_library_and_the_descriptors_only(
    imports: Imports, distributions: list[Any]
) -> None:
    heavy = [
        f"{path}:{line} imports {name}"
        for plugin in distributions[1:]
        for module in set(plugin.entry_points.values())
        for path in [plugin.folder / "src" / (module.replace(".", "/") + ".py")]
        for name, line in imports[path]
        if name.split(".")[0] not in sys.stdlib_module_names and not f"{name}.".startswith("jackfield.plugins.")
    ]
    assert heavy == []


def files_of(distribution: Any) -> list[Path]:
    """The modules of a distribution."""
    return sorted(distribution.source.rglob("*.py"))


def is_private(part: str) -> bool:
    """Whether a name, or a part of one, is for its own package only."""
    return part.startswith("_") and part != "__version__"


def beside_a_script(path: Path) -> set[str]:
    """The modules that a file finds beside it when it is run as a script, which is not in its package then."""
    is_script = '\nif __name__ == "__main__":\n' in path.read_text(encoding="utf-8")
    return {neighbour.stem for neighbour in path.parent.glob("*.py")} if is_script else set()


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every module (and every name taken from one) that a file imports anywhere, with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node.func):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, node.lineno


def strings_of(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Every string that is not a docstring, with its line."""
    docstrings = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value, node.lineno


def owning(name: str, modules: Mapping[str, Path]) -> str | None:
    """The module that an imported name is, or is of."""
    return next((one for one in (name, name.rpartition(".")[0]) if one in modules), None)


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__", "find_spec")


def requirement_name(text: str) -> str:
    """The normalised name of what a requirement asks for."""
    found = re.match(r"[\w.-]+", text.strip())
    assert found, text
    return re.sub(r"[-_.]+", "-", found[0]).lower()


@cache
def owners_of_modules() -> Mapping[str, list[str]]:
    """The distributions that have each module at the top; they are all read for it."""
    return importlib.metadata.packages_distributions()


def modules_of(requirements: list[str]) -> set[str]:
    """The top-level modules that the named distributions bring; of one that is not installed, that of its name."""
    wanted = {requirement_name(text) for text in requirements}
    return {name.replace("-", "_") for name in wanted} | {
        module
        for module, owners in owners_of_modules().items()
        if any(re.sub(r"[-_.]+", "-", owner).lower() in wanted for owner in owners)
    }
