"""`jackfield requirements`: print the packages that an agent needs, for `pip install -r`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from jackfield.cli import Parser, escape_line
from jackfield.plugins import PluginHost, default_host
from jackfield_agent_files.files import load_agent_config
from jackfield_manage.cli.news import tell_news
from jackfield_manage.distributions import installed
from jackfield_manage.judging.python_files import read_python_uses
from jackfield_manage.judging.requirements import Needs, needs_of, needs_of_python


def main(arguments: Sequence[str]) -> int:
    """Run `jackfield requirements …` and return its exit code."""
    options = parser().parse_args(arguments)
    tell_news()
    return requirements(options)


def parser() -> Parser:
    """Return the argument parser of `jackfield requirements`."""
    requirements_parser = Parser(
        prog="jackfield requirements", description="List the packages that an agent needs, for pip install -r."
    )
    requirements_parser.add_argument(
        "agent_file", metavar="AGENT", help="an agent file (YAML, TOML or JSON), or a .py file that creates an agent"
    )
    requirements_parser.add_argument("--pin", action="store_true", help="pin the installed versions")
    return requirements_parser


def requirements(options: argparse.Namespace) -> int:
    """Print the packages an agent needs; return 1 if a component is unknown or cannot be pinned."""
    needs = _read_needs(options.agent_file, default_host())
    for line in requirement_lines(needs, pin=options.pin):
        print(escape_line(line))
    problems = [*needs.unknown, *(_pin_problems(needs) if options.pin else ())]
    for line in problems:
        sys.stderr.write(f"jackfield: {escape_line(line)}\n")
    return int(bool(problems))


def _read_needs(path: str, host: PluginHost) -> Needs:
    if not path.endswith(".py"):
        return needs_of(load_agent_config(path, trust=True, params=None), host)  # trusted, because it is only read
    uses = read_python_uses(path)
    for line in uses.unknown:
        sys.stderr.write(f"jackfield: {escape_line(line)}, so the packages it needs are not listed\n")
    return needs_of_python(uses, host)


def _pin_problems(needs: Needs) -> Iterator[str]:
    """Yield a line for each package that cannot be pinned to a version on an index."""
    installation = installed()
    for name in needs.used:
        if name not in installation:
            yield f"{name} is not installed here, so it is not pinned"
        elif installation[name].direct:
            origin = "a folder" if installation[name].editable else "a URL or file"
            yield f"{name} was installed from {origin}: its version {installation[name].version} may not be on an index"


def requirement_lines(needs: Needs, *, pin: bool = False) -> list[str]:
    """Return the lines of a requirements file, with each package's components as a comment."""
    installation = installed() if pin else {}
    lines = {name: f"{name}=={installation[name].version}" if name in installation else name for name in needs.used}
    width = max(len(line) for line in lines.values())
    return [
        f"{line:{width}}  # {', '.join(needs.distributions[name])}" if needs.distributions[name] else line
        for name, line in lines.items()
    ]
