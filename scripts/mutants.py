"""Change the code in small ways, one at a time, and see whether the tests notice.

python scripts/mutants.py                        a sample of every distribution; fails where a share has dropped
python scripts/mutants.py core.agents --count 40 more of one area
python scripts/mutants.py --seed 7               another sample
python scripts/mutants.py --record               write the shares of this run into mutants.json
python scripts/mutants.py core.agents --count 200 --quick
                                                 many more in the same time, but only in forks of one pytest process

An area is a package of the core or a distribution, and the tests that must notice are those of the distribution;
`mutants.toml` names fewer for large packages. Each change is first made in memory and tried with the tests that reach
it, and then on disk with all tests of the area if those notice nothing. A change that no test notices is printed:
either a test is missing, or the line can go. Changes that make no difference are listed in `mutants.toml`, each with
the reason, and are not tried.

One seed gives the same changes each time, and code that is added elsewhere leaves most of them the same.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
SETTINGS_FILE = ROOT / "scripts/mutants.toml"
SHARES_FILE = ROOT / "scripts/mutants.json"
COUNT = 8  # of an area
PATIENCE_S = 120  # tests that take longer are caught in a loop caused by the change, so they noticed it
CHANCE = 0.05  # a share that would be this low by chance so rarely counts as a drop
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
_OTHER_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}

_FOR_READERS = (
    "kw_only",
    "slots",
    "frozen",
    "eq",
    "repr",
    "description",
    "summary",
    "help",
    "strict",
    "encoding",
    "name",
)
"""Keyword arguments that only shape a class or are read by people, and so do not affect a program's behaviour."""

Change = tuple[object, str, str]
"""Another value for a field, the kind of change, and a description."""


@dataclass(frozen=True)
class Area:
    """Code that is mutated together, and the tests that must notice. Paths are relative to the repository root."""

    name: str
    root: Path
    sources: tuple[str, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """A changed file.

    Attributes:
        lines: The first and the last line of the changed statement.
        place: The function or class that contains the change.
        text: The changed text, without annotations and docstrings.
        plain: The same text without the change.
        number: Counts changes of the same name.
    """

    file: Path
    lines: tuple[int, int]
    place: str
    kind: str
    change: str
    text: str
    plain: str
    number: int = 0

    @property
    def name(self) -> str:
        """The identity of the change, wherever its line moves to, as used under `equivalent` in `mutants.toml`."""
        file = self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file
        return f"{file}::{self.place}::{self.change}" + (f" #{self.number}" if self.number else "")


@dataclass(frozen=True)
class Score:
    """The numbers of changes that were tried, and of those that the tests noticed."""

    noticed: int
    of: int

    @property
    def share(self) -> float:
        """The share of changes noticed, from 0 to 1; 1 if none were tried."""
        return self.noticed / self.of if self.of else 1.0

    def is_below(self, recorded: Score) -> bool:
        """True if so few noticed changes would be unlikely by chance, given the recorded share."""
        share = (recorded.noticed + 1) / (recorded.of + 2)  # a perfect score may have been luck
        ways = (
            math.comb(self.of, few) * share**few * (1 - share) ** (self.of - few) for few in range(self.noticed + 1)
        )
        return self.noticed < self.of and sum(ways) < CHANCE


def areas() -> dict[str, Area]:
    """Return every package of the core and every distribution with tests, by name."""
    known = dict(_core_areas())
    for project in sorted(ROOT.glob("plugins/*/*/pyproject.toml")):
        folder = project.parent.relative_to(ROOT)
        if (project.parent / "tests").is_dir():
            sources = tuple(path.name for path in (project.parent / "src").iterdir() if path.is_dir())
            known[folder.name] = Area(folder.name, folder / "src", sources, (f"{folder}/tests",))
    fewer = _settings().get("tests", {})
    return {name: replace(area, tests=tuple(fewer.get(name, area.tests))) for name, area in known.items()}


def _core_areas() -> Iterator[tuple[str, Area]]:
    package = ROOT / "core/src/jackfield"
    for path in sorted(package.iterdir()):
        if path.is_dir() and any(path.glob("*.py")):
            name = f"core.{path.name}"
            yield name, Area(name, Path("core/src"), (f"jackfield/{path.name}",), ("core/tests",))
    modules = tuple(f"jackfield/{path.name}" for path in sorted(package.glob("*.py")))
    yield "core", Area("core", Path("core/src"), modules, ("core/tests",))


def _settings() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(SETTINGS_FILE.read_text(encoding="utf-8"))


def equivalents() -> dict[str, str]:
    """Return the changes that make no difference, with reasons."""
    return tomllib.loads(SETTINGS_FILE.read_text(encoding="utf-8")).get("equivalent", {})


def recorded() -> dict[str, Score]:
    """Return the scores of the last recorded run."""
    if not SHARES_FILE.exists():
        return {}
    return {name: Score(*pair) for name, pair in json.loads(SHARES_FILE.read_text(encoding="utf-8")).items()}


def record(scores: dict[str, Score]) -> None:
    """Record scores, replacing those of the same areas."""
    kept = {name: score for name, score in {**recorded(), **scores}.items() if name in areas() or name in scores}
    lines = [f"  {json.dumps(name)}: [{score.noticed}, {score.of}]" for name, score in sorted(kept.items())]
    SHARES_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


# --- changes ---


def mutants(area: Area) -> list[Mutant]:
    """Return all possible changes in an area, ordered by file and line."""
    paths = [ROOT / area.root / source for source in area.sources]
    files = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py")))
    counts: Counter[str] = Counter()
    every = []
    for file in files:
        for mutant in _of_file(file):
            every.append(replace(mutant, number=counts[mutant.name]))
            counts[mutant.name] += 1
    return every


def sample(every: Sequence[Mutant], *, count: int, seed: int) -> list[Mutant]:
    """Choose some changes, the same number of each kind.

    The choice depends on each change and its location, not on its neighbours, so it stays the same when code is added.
    """
    by_kind: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(every, key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).digest()):
        by_kind[mutant.kind].append(mutant)
    kinds = sorted(by_kind, key=lambda kind: hashlib.sha256(f"{seed} {kind} {every[0].file.name}".encode()).digest())
    chosen: list[Mutant] = []
    while len(chosen) < count and any(by_kind.values()):
        chosen += [by_kind[kind].pop(0) for kind in kinds if by_kind[kind]]
    return chosen[:count]


def _of_file(file: Path) -> Iterator[Mutant]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    _forget_annotations(tree)
    plain = ast.unparse(tree)
    for node, place, statement in list(_with_places(tree)):
        for name, field in list(ast.iter_fields(node)):
            for changed, kind, what in _changes(node, name, field):
                lines = _lines_of(_first_changed(field, changed) or statement)
                setattr(node, name, changed)
                text = ast.unparse(ast.fix_missing_locations(tree))
                setattr(node, name, field)
                yield Mutant(file, lines, place, kind, what, text, plain)


def _first_changed(field: object, changed: object) -> ast.stmt | None:
    """Return the first statement of a body that is another after a change; None if the field is not a body."""
    if not isinstance(field, list) or not isinstance(changed, list):
        return None
    different = (old for old, new in zip(field, changed, strict=False) if old is not new and isinstance(old, ast.stmt))
    return next(different, None)


def _lines_of(statement: ast.stmt | None) -> tuple[int, int]:
    """Return the first and the last line of a statement, without those of the statements in its body."""
    if statement is None:
        return 0, 0
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return statement.lineno, max(last, statement.lineno)


def _with_places(
    node: ast.AST, place: str = "", statement: ast.stmt | None = None
) -> Iterator[tuple[ast.AST, str, ast.stmt | None]]:
    """Yield all nodes, each with the dotted name of the enclosing function or class, and the enclosing statement."""
    if isinstance(node, ast.stmt):
        statement = node
    yield node, place, statement
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):  # nearly always a type
        return
    annotation = node.annotation if isinstance(node, ast.AnnAssign) else None  # a type checker's business
    for child in ast.iter_child_nodes(node):
        if child is annotation or _is_list_of_names(child):
            continue
        if isinstance(child, ast.keyword) and child.arg in _FOR_READERS:
            continue
        is_named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inner = f"{place}.{child.name}".lstrip(".") if is_named else place  # type: ignore[attr-defined]
        yield from _with_places(child, inner, statement)


def _is_list_of_names(node: ast.AST) -> bool:
    """Return True for `__all__` and similar names, which other tests pin."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id.startswith("__") for target in targets)


def _forget_annotations(tree: ast.AST) -> None:
    """Remove everything that has no effect at run time: docstrings, overloads, and code for type checkers."""
    for node in ast.walk(tree):
        for name in ("returns", "annotation"):
            if getattr(node, name, None) is not None and not isinstance(node, ast.AnnAssign):
                setattr(node, name, None)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_only_said(one)] or [ast.Pass()]  # type: ignore[attr-defined]


def _is_only_said(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(decorator_list=[ast.Name(id="overload")]):
            return True
    return False


def _changes(node: ast.AST, name: str, field: object) -> Iterator[Change]:
    """Yield other values for one field of a node."""
    if name == "annotation":
        return
    yield from _one_side(field)
    match node, name, field:
        case _, "body" | "orelse", [*statements]:
            yield from _without_statements(statements)
        case ast.Try(), "finalbody", [*statements] if statements:
            yield [ast.Pass()], "clean-up", f"without finally: {_short(statements[0])}"
        case ast.Constant(), "value", _:
            yield from _other_constants(field)
        case ast.BoolOp() | ast.BinOp() | ast.Compare(), _, _:
            yield from _other_operators(field)
        case ast.If() | ast.While() | ast.IfExp(), "test", ast.expr():
            yield ast.UnaryOp(ast.Not(), copy.deepcopy(field)), "condition", f"not: if {_short(field)}"
            yield ast.Constant(value=False), "condition", f"never: if {_short(field)}"
            if not isinstance(node, ast.While):
                yield ast.Constant(value=True), "condition", f"always: if {_short(field)}"
        case ast.Name(), "id", str() if field in _OTHER_NAMES:
            yield _OTHER_NAMES[field], "function", f"{field} becomes {_OTHER_NAMES[field]}"
        case _:
            yield from _other_lists(node, name, field)


def _other_lists(node: ast.AST, name: str, field: object) -> Iterator[Change]:
    """Yield other elements for a collection, and other arguments for a call."""
    match node, name, field:
        case ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()) | ast.Set(), "elts", [_, _, *_]:
            yield field[:-1], "element", f"without the element {_short(field[-1])}"  # type: ignore[index]
            yield field[1:], "element", f"without the element {_short(field[0])}"  # type: ignore[index]
        case ast.Call(), "keywords", [*keywords]:
            for index, keyword in enumerate(keywords):
                if keyword.arg in _FOR_READERS:
                    continue
                without = [*keywords[:index], *keywords[index + 1 :]]
                yield without, "keyword", f"without the argument {keyword.arg or '**'}={_short(keyword.value)}"
        case ast.Call(), "args", [first, second, *rest] if not _is_isinstance(node) and not _ignores_order(node):
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                yield [second, first, *rest], "order", f"arguments swapped: {_short(node)}"


def _is_isinstance(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass", "cast")


def _ignores_order(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in _OTHER_NAMES and not node.keywords


def _one_side(field: object) -> Iterator[Change]:
    """Yield a union or boolean operation with one side missing."""
    match field:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield left, "element", f"without {_short(right)} of a union"
            yield right, "element", f"without {_short(left)} of a union"
        case ast.BoolOp(values=[first, *_, last]):
            yield first, "operand", f"only {_short(first)}"
            yield last, "operand", f"only {_short(last)}"


def _other_operators(field: object) -> Iterator[Change]:
    match field:
        case ast.AST() if other := _SWAPPED.get(type(field)):
            yield other(), "operator", f"{type(field).__name__} becomes {other.__name__}"
        case [ast.cmpop() as operator] if other := _SWAPPED.get(type(operator)):
            yield [other()], "operator", f"{type(operator).__name__} becomes {other.__name__}"


def _other_constants(field: object) -> Iterator[Change]:
    if isinstance(field, bool):
        yield not field, "constant", f"{field} becomes {not field}"
    elif isinstance(field, int):
        yield field + 1, "constant", f"{field} becomes {field + 1}"
        yield field - 1, "constant", f"{field} becomes {field - 1}"


def _without_statements(body: list[ast.stmt]) -> Iterator[Change]:
    for index, statement in enumerate(body):
        if _can_go(statement):
            kind = "clean-up" if _cleans_up(statement) else "statement"
            yield [*body[:index], ast.Pass(), *body[index + 1 :]], kind, f"without {_short(statement)}"


def _can_go(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def _cleans_up(statement: ast.stmt) -> bool:
    text = ast.unparse(statement)
    return any(
        f".{name}(" in text for name in ("aclose", "close", "cancel", "clear", "pop", "release", "kill", "unlink")
    )


def _short(node: object) -> str:
    text = " ".join(ast.unparse(node).split()) if isinstance(node, ast.AST) else str(node)
    return text if len(text) <= 60 else f"{text[:60]}…"


# --- running ---


class Copies:
    """Copies of the repository, each with an environment whose editable installs come from the copy.

    A copy of a single package would not be enough, because the core loads nothing from outside its installed location.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        unneeded = ("__pycache__", ".venv", ".git", ".tools", ".cache", ".*_cache", "dist", "site", ".hypothesis")
        for number in range(count):
            where = folder / str(number)
            shutil.copytree(ROOT, where, ignore=shutil.ignore_patterns(*unneeded), symlinks=True)
            _make_environment(where)
            self._free.put(where)

    def try_in_forks(self, area: Area, chosen: Sequence[Mutant], *, jobs: int) -> tuple[list[bool], list[str]]:
        """Try changes in forks of one pytest process; see `tests/support/changes.py`.

        Returns:
            For each change True if the tests noticed it, and False if only `is_noticed` can tell; and the node ids of
            the tests that fail without a change.

        Raises:
            SystemExit: The process did not finish.
        """
        where = self._free.get()
        job, outcome = where / ".cache/changes.json", where / ".cache/outcome.json"
        job.parent.mkdir(exist_ok=True)
        changes = [
            {
                "file": str(where / mutant.file.relative_to(ROOT)),
                "lines": mutant.lines,
                "plain": mutant.plain,
                "text": mutant.text,
            }
            for mutant in chosen
        ]
        job.write_text(json.dumps({"folder": str(where / area.root), "changes": changes}), encoding="utf-8")
        outcome.unlink(missing_ok=True)
        options = ["-p", "tests.support.changes", f"--changes={job}", f"--outcome={outcome}", f"--forks={jobs}"]
        try:
            _run_tests(area, where, options)
            if not outcome.exists():
                raise SystemExit(f"{area.name}: pytest ended early; to see why, run: pytest {' '.join(area.tests)}")
            found = json.loads(outcome.read_text(encoding="utf-8"))
        finally:
            self._free.put(where)
        return found["noticed"], found["failed"]

    def is_noticed(self, area: Area, mutant: Mutant | None) -> bool:
        """Return True if a test of an area fails with this change, or without any change if `mutant` is None."""
        where = self._free.get()
        try:
            if mutant is None:
                return _run_tests(area, where, ["-x"]) != 0
            file = where / mutant.file.relative_to(ROOT)
            real = file.read_text(encoding="utf-8")
            _write(file, mutant.text)
            try:
                return _run_tests(area, where, ["-x"], patience_s=PATIENCE_S) != 0
            finally:
                _write(file, real)
        finally:
            self._free.put(where)


def _make_environment(where: Path) -> None:
    """Create a copy's `.venv`: editable packages come from the copy, everything else from this environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(where / ".venv")], check=True)  # noqa: S603
    ours = Path(sysconfig.get_paths()["purelib"])
    theirs = next((where / ".venv").glob("lib/python*/site-packages"))
    for entry in ours.iterdir():
        if "jackfield" not in entry.name:
            (theirs / entry.name).symlink_to(entry)
        elif entry.is_dir():
            shutil.copytree(entry, theirs / entry.name)
        else:
            shutil.copy(entry, theirs)
    for file in (*theirs.glob("*jackfield*.pth"), *theirs.glob("*jackfield*/direct_url.json")):
        file.write_text(file.read_text(encoding="utf-8").replace(str(ROOT), str(where)), encoding="utf-8")
    if (uv := Path(sys.executable).with_name("uv")).exists():
        (where / ".venv/bin/uv").symlink_to(uv)  # the manager's tests install packages with it
    for script in Path(sys.executable).parent.glob("jackfield*"):
        copied = where / ".venv/bin" / script.name
        copied.write_text(script.read_text(encoding="utf-8").replace(str(ROOT), str(where)), encoding="utf-8")
        copied.chmod(0o755)


def _write(file: Path, text: str) -> None:
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()  # two changes within a second may have the same size, and Python would use the older bytecode
    file.write_text(text, encoding="utf-8")


def _run_tests(area: Area, where: Path, options: Sequence[str] = (), patience_s: float | None = None) -> int | None:
    """Run the tests of an area in a copy. Return the exit status, or None if they were stopped after `patience_s`."""
    python, marks = str(where / ".venv/bin/python"), "not slow and not nightly"
    fixed = ["-q", "-n", "0", "-m", marks, "-p", "no:cacheprovider", f"--basetemp={where / '.cache/tests'}"]
    pytest = [python, "-m", "pytest", *fixed, *options, *area.tests]
    command = [*apart(), *pytest]
    environ = {**os.environ, "VIRTUAL_ENV": str(where / ".venv")}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    silent = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603 - our own tests
        command, cwd=where, env=environ, stdin=silent, stdout=silent, stderr=silent, start_new_session=True
    ) as running:
        try:
            return running.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # The whole group, because tests leave kernels and servers running if a change prevents closing them.
            _end_group(running.pid)


@cache
def apart() -> list[str]:
    """Return the prefix of a command that runs in its own PID namespace.

    A change to code that finds and kills processes (`confine`) could make it kill all of them. Only Linux has such
    code.

    Raises:
        SystemExit: This is Linux, and PID namespaces are unavailable.
    """
    if sys.platform != "linux":
        return []
    # The shell is process 1, because pytest would ignore signals as process 1.
    # Process ids start high, because a sandbox has its own low ones, which tests would take for those of the host.
    numbers = "echo 20000 > /proc/sys/kernel/ns_last_pid"
    inside = ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", f'{numbers}; "$@"; exit $?', "sh"]
    for rights in ([], ["--user", "--map-current-user"]):
        command = ["unshare", *rights, *inside]
        if not shutil.which("unshare"):
            break
        if subprocess.run([*command, "true"], check=False, capture_output=True).returncode == 0:  # noqa: S603
            return command
    raise SystemExit("no namespace of processes can be had here: a change could end all of your processes")


def _end_group(group: int) -> None:
    """Kill all remaining processes of a group."""
    try:
        os.killpg(group, 9)
    except ProcessLookupError:
        return


def score(area: Area, copies: Copies, *, count: int, seed: int, jobs: int, quick: bool = False) -> Score | None:
    """Try a sample of changes and print those that no test notices. Return None if the tests fail without a change.

    Args:
        area: The code and its tests.
        copies: Copies of the repository in which the tests run.
        count: The number of changes.
        seed: Selects the sample.
        jobs: The number of changes to try at once.
        quick: Do not try changes on disk that no test notices in memory.
    """
    known = equivalents()
    every = [mutant for mutant in mutants(area) if mutant.name not in known]
    chosen = sample(every, count=count, seed=seed) if every else []
    noticed, failed = copies.try_in_forks(area, chosen, jobs=jobs)
    if failed and copies.is_noticed(area, None):
        _say(f"{area.name:22} not tried: its tests fail without any change ({' '.join(failed)})")
        return None
    if not quick:
        unsure = [mutant for mutant, is_noticed in zip(chosen, noticed, strict=True) if not is_noticed]
        with ThreadPoolExecutor(jobs) as pool:
            on_disk = dict(zip(unsure, pool.map(lambda mutant: copies.is_noticed(area, mutant), unsure), strict=True))
        noticed = [on_disk.get(mutant, True) for mutant in chosen]
    for mutant, is_noticed in zip(chosen, noticed, strict=True):
        if not is_noticed:
            _say(f"  not noticed, line {mutant.lines[0]}: {mutant.name}")
    return Score(sum(noticed), len(noticed))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Try the selected areas. Return 1 if an area's share has dropped or its tests fail without a change."""
    known, before = areas(), recorded()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("area", nargs="*", choices=[[], *known], help="all, if none is named")
    parser.add_argument("--count", type=int, default=COUNT, help="changes of each area (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which sample (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="at once (%(default)s)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no area after so long")
    parser.add_argument("--record", action="store_true", help="write the shares into mutants.json")
    parser.add_argument("--quick", action="store_true", help="try changes in memory only; some are not noticed there")
    options = parser.parse_args()
    if options.quick and options.record:
        parser.error("--quick does not try all changes on disk, so its shares cannot be recorded")
    ends_at = time.monotonic() + 60 * options.minutes
    failed, scores = [], {}
    with tempfile.TemporaryDirectory() as folder:
        copies = Copies(Path(folder), options.jobs)
        for name in options.area or known:
            if time.monotonic() > ends_at:
                _say(f"{name:22} not tried: the time is over")
                continue
            found = score(
                known[name],
                copies,
                count=options.count,
                seed=options.seed,
                jobs=options.jobs,
                quick=options.quick,
            )
            if found is None:
                failed.append(name)
                continue
            scores[name] = found
            old = before.get(name)
            said = "not recorded yet" if old is None else f"recorded {old.noticed} of {old.of}"
            _say(f"{name:22} {found.noticed:3} of {found.of:3} noticed: {found.share:.2f} ({said})")
            if old is not None and not options.quick and found.is_below(old):
                failed.append(name)
            if options.record:
                record({name: found})
    if failed:
        _say(f"dropped, or not to be tried: {', '.join(failed)}. Write the tests, or take back what weakened them")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
