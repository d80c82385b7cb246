"""`jackfield requirements`: the packages that an agent needs, as lines for `pip install -r`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from jackfield.cli import Parser, printable
from jackfield.plugins import PluginHost, default_host
from jackfield_agent_files.files import load_agent_config
from jackfield_manage.cli.news import tell_news
from jackfield_manage.distributions import installed
from jackfield_manage.judging.python_files import python_uses
from jackfield_manage.judging.requirements import Needs, needs_of, needs_of_python


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield requirements …`, and return its exit code."""
    options = parser().parse_args(arguments)
    tell_news()
    return requirements(options)


def parser() -> Parser:
    """What `jackfield requirements` takes."""
    made = Parser(
        prog="jackfield requirements", description="List the packages that an agent needs, for pip install -r."
    )
    made.add_argument(
        "agent_file", metavar="AGENT", help="an agent as a YAML, TOML or JSON file, or a .py file that makes one"
    )
    made.add_argument("--pin", action="store_true", help="pin the versions that are installed")
    return made


def requirements(options: argparse.Namespace) -> int:
    """Print what an agent needs as lines for `pip install -r`; 1 if something of it is nowhere to be found."""
    needs = _needs_of_file(options.agent_file, default_host())
    for line in requirement_lines(needs, pin=options.pin):
        print(printable(line))
    problems = [*needs.unknown, *(_unpinned(needs) if options.pin else ())]
    for line in problems:
        sys.stderr.write(f"jackfield: {printable(line)}\n")
    return int(bool(problems))


def _needs_of_file(path: str, host: PluginHost) -> Needs:
    if not path.endswith(".py"):
        return needs_of(load_agent_config(path, trust=True), host)  # it is only read
    uses = python_uses(path)
    for line in uses.unknown:
        sys.stderr.write(f"jackfield: {printable(line)}: this list does not include what it needs\n")
    return needs_of_python(uses, host)


def _unpinned(needs: Needs) -> Iterator[str]:
    """What `--pin` cannot hold to a version that an index has, a line each."""
    found = installed()
    for name in needs.listed:
        if name not in found:
            yield f"{name} is not installed here, so its line has no version"
        elif found[name].direct:
            where = "a folder" if found[name].editable else "an address of its own"
            yield f"{name} was installed from {where}: an index may not have its version {found[name].version}"


def requirement_lines(needs: Needs, *, pin: bool = False) -> list[str]:
    """The lines of a requirements file; what each distribution is for is a comment beside it."""
    pins = {name: f"{name}=={one.version}" for name, one in installed().items()} if pin else {}
    names = {name: pins.get(name, name) for name in needs.distributions}
    width = max(map(len, names.values()))
    return [_line(f"{names[name]:{width}}", needs.distributions[name]) for name in needs.listed]


def _line(requirement: str, uses: Sequence[str]) -> str:
    return f"{requirement}  # {', '.join(uses)}" if uses else requirement.rstrip()
