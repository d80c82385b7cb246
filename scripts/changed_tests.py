"""Run the tests that a change can touch: `make test-changed`.

python scripts/changed_tests.py [--since COMMIT] [--list] [arguments of pytest]

A change is what differs from the commit where this branch left `main`, in commits and in the work tree. It touches

- the tests of every distribution that has a changed file, whichever file that is;
- every test file that imports a changed module, directly or through others of ours, or names it as an entry point does;
- every test file that names a changed file or its folder, such as "plugin-template", and of those across distributions
  each that names a changed one;
- of the tests across distributions, those whose parameter is a changed distribution or document. A slow one without
  such a parameter is left to `make test`.

What is found at run time only, such as a plugin that a test asks for by its component's name, is not seen. `make test`
has the last word.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
# A change of one of these can touch any test.
OF_ALL = frozenset({"pyproject.toml", "conftest.py", "constraints.txt"})
# What a test takes that runs for each distribution.
OF_EACH = frozenset({"distribution", "distributions", "plugin"})
# Folders that are named for other reasons than what is in them.
TOO_WIDE = frozenset({"core", "plugins", "tests"})
# Of a module, or of an attribute of one.
NAME = re.compile(r"[a-z_]\w*(\.\w+)*(:\w+)?")


@dataclass(frozen=True)
class Distribution:
    """One of ours. `folder` is relative to the repository, with forward slashes, as all paths here are."""

    folder: str
    name: str

    def has(self, path: str) -> bool:
        return path.startswith(f"{self.folder}/")


@dataclass(frozen=True)
class Repository:
    """The files of a repository, and which of them reach which by imports."""

    root: Path
    files: frozenset[str]

    @cached_property
    def distributions(self) -> list[Distribution]:
        found = []
        for path in sorted(self.files):
            if re.fullmatch(r"(core|plugins/[^/]+/[^/]+)/pyproject\.toml", path) and (self.root / path).exists():
                project = tomllib.loads((self.root / path).read_text(encoding="utf-8"))["project"]
                found.append(Distribution(str(PurePosixPath(path).parent), project["name"]))
        return found

    @cached_property
    def modules(self) -> dict[str, str]:
        """The file of each module; a deleted one counts, for who still imports it."""
        folders = [f"{one.folder}/src/" for one in self.distributions]
        named = {}
        for path in self.files:
            if path.endswith(".py") and "/tests/" not in f"/{path}":
                folder = next((one for one in folders if path.startswith(one)), "")
                parts = path.removeprefix(folder).removesuffix(".py").split("/")
                named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        return named

    @cached_property
    def test_files(self) -> list[str]:
        return sorted(path for path in self.files if re.search(r"(^|/)tests/(.*/)?test_\w+\.py$", path))

    @cached_property
    def _direct(self) -> dict[str, frozenset[str]]:
        return {path: self._imports_of(path) for path in self.files if path.endswith(".py")}

    def reached_from(self, path: str) -> set[str]:
        """The file itself, the conftests that pytest reads before it, and all that they import, however far."""
        parents = [*PurePosixPath(path).parents][:-1]
        open_ = [path, *(str(folder / "conftest.py") for folder in parents)]
        reached: set[str] = set()
        while open_:
            if (one := open_.pop()) in self.files and one not in reached:
                reached.add(one)
                open_.extend(self._direct.get(one, ()))
        return reached

    def text_of(self, path: str) -> str:
        file = self.root / path
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def _imports_of(self, path: str) -> frozenset[str]:
        found: set[str] = set()
        for name in _names_in(_tree(self.text_of(path)), self._package_of(path)):
            found |= self._files_of(name)
        return frozenset(found - {path})

    def _package_of(self, path: str) -> str:
        name = next((name for name, file in self.modules.items() if file == path), "")
        return name if path.endswith("__init__.py") else name.rpartition(".")[0]

    def _files_of(self, name: str) -> set[str]:
        """Of a dotted name: the module that it is or is in, and the packages around it, which importing it runs."""
        parts = name.split(".")
        names = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        return {self.modules[one] for one in names if one in self.modules}


def changed_files(root: Path, since: str = "") -> set[str]:
    """The files that differ from a commit, those that git does not know yet included."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)  # noqa: S603, S607
        return done.stdout.splitlines() if done.returncode == 0 else []

    if since and not git("rev-parse", "--verify", f"{since}^{{commit}}"):
        raise SystemExit(f"{since!r} is not a commit: --since takes what `git rev-parse` understands")
    left_main = [commit for main in ("main", "origin/main") for commit in git("merge-base", "HEAD", main)]
    base = since or [*left_main, "HEAD"][0]
    return {*git("diff", "--name-only", "--no-renames", base), *git("ls-files", "--others", "--exclude-standard")}


def repository(root: Path, changed: Iterable[str]) -> Repository:
    """What git has in a folder, with what changed."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True)  # noqa: S607
    return Repository(root, frozenset({*listed.stdout.splitlines(), *changed}))


def touched_files(repo: Repository, changed: Set[str]) -> list[str]:
    """The test files that a change can touch."""
    if changed & OF_ALL:
        return [path for path in repo.test_files if (repo.root / path).exists()]
    modules = {path for path in changed if path.endswith(".py")} | _packages_around(repo, changed)
    homes = [one for one in repo.distributions if any(map(one.has, changed))]
    return [
        path
        for path in repo.test_files
        if (repo.root / path).exists()
        and (
            any(one.has(path) for one in homes)
            or not modules.isdisjoint(repo.reached_from(path))
            or _is_named(repo, path, changed)
        )
    ]


def is_wanted(node_id: str, *, is_slow: bool, names: Set[str], known: Sequence[str]) -> bool:
    """Whether one test across distributions is worth its time for a change.

    Args:
        node_id: As pytest writes it.
        is_slow: Whether it is marked so.
        names: The changed distributions and documents.
        known: All of both.
    """
    parameter = node_id.partition("[")[2].removesuffix("]")
    about = [name for name in known if re.match(rf"{re.escape(name)}($|:|-(?!\w))", parameter)]
    return any(name in names for name in about) if about else not is_slow


def names_changed(repo: Repository, changed: Set[str]) -> set[str]:
    """The distributions and documents that a change is about; a distribution's README too, which shows its code."""
    homes = [one for one in repo.distributions if any(map(one.has, changed))]
    documents = {path for path in changed if path.endswith(".md")}
    return {one.name for one in homes} | {f"{one.folder}/README.md" for one in homes} | documents


def main(arguments: Sequence[str] | None = None) -> int:
    """Find the tests, and hand them to pytest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--since", default="", help="the commit to compare with, instead of where the branch left main")
    parser.add_argument("--list", action="store_true", help="only print what would run")
    options, rest = parser.parse_known_args(arguments)
    changed = changed_files(ROOT, options.since)
    repo = repository(ROOT, changed)
    files = touched_files(repo, changed)
    if not files:
        print("No test is touched by what changed.")  # noqa: T201
        return 0
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)  # as for `python -m pytest`; processes that a test starts may import its module
    how = ["--collect-only"] if options.list else []
    code = pytest.main(["-q", *how, *rest, *files], plugins=[Wanted(repo, changed)])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code


class Wanted:
    """A plugin of pytest that leaves out the tests across distributions that a change is not worth."""

    def __init__(self, repo: Repository, changed: Set[str]) -> None:
        self._changed = changed
        self._names = names_changed(repo, changed)
        self._known = [one.name for one in repo.distributions] + [path for path in repo.files if path.endswith(".md")]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Say of the others that they are deselected."""
        wanted = {item: self._wants(item) for item in items}
        config.hook.pytest_deselected(items=[item for item in items if not wanted[item]])
        items[:] = filter(wanted.__getitem__, items)

    def _wants(self, item: pytest.Item) -> bool:
        file = item.nodeid.partition("::")[0]
        if self._changed & OF_ALL or file in self._changed or not file.startswith("tests/"):
            return True
        is_slow = item.get_closest_marker("slow") is not None
        return is_wanted(item.nodeid, is_slow=is_slow, names=self._names, known=self._known)


def _packages_around(repo: Repository, changed: Set[str]) -> set[str]:
    """The packages whose data changed: templates, tables, whatever they read."""
    found = set()
    for path in changed:
        if not path.endswith(".py") and "/src/" in path:
            for folder in PurePosixPath(path).parents:
                if (package := str(folder / "__init__.py")) in repo.files:
                    found.add(package)
                    break
    return found


def _is_named(repo: Repository, test: str, changed: Set[str]) -> bool:
    """Whether a test file names what changed: a path, a folder, a pattern of paths, its distribution, or each."""
    tree = _tree(repo.text_of(test))
    said = set(_strings(tree))
    homes = {one.name for one in repo.distributions if any(map(one.has, changed))}
    # Elsewhere the name of a distribution is a word like another: tests of the core make what they name.
    if test.startswith("tests/") and homes and (said & homes or not OF_EACH.isdisjoint(_parameters(tree))):
        return True
    patterns = [text.replace("**/", "*") for text in said if "*" in text and "/" in text]
    return any(
        (said & {path, *_folders(path)}) - TOO_WIDE or any(fnmatchcase(path, pattern) for pattern in patterns)
        for path in changed
    )


def _folders(path: str) -> Iterator[str]:
    return (str(folder) for folder in [*PurePosixPath(path).parents][:-1])


def _parameters(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield from (one.arg for one in node.args.args)


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:  # made to be wrong, or half written: it imports nothing yet
        return ast.Module(body=[], type_ignores=[])


def _strings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _names_in(tree: ast.Module, package: str) -> Iterator[str]:
    """Every dotted name that is imported, and every one that stands in a text as an entry point does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*around, *filter(None, [node.module])])
            yield from (f"{source}.{alias.name}" for alias in node.names)
    yield from (text.partition(":")[0] for text in _strings(tree) if NAME.fullmatch(text))


if __name__ == "__main__":
    sys.exit(main())
