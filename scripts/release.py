"""Rehearse and mark releases: every distribution is built, checked and tried as its users will get it.

python scripts/release.py [DIST …]            all steps, for these distributions or all, in the order of dependence
python scripts/release.py --tag [DIST …]      the same, then a tag for each; pushing a tag is what publishes
python scripts/release.py name TAG            what a tag is of, as GitHub's outputs: name, version, folder
python scripts/release.py order [DIST …]      print them in the order in which they must be published

The archives get the address of the repository and the record of the contract tests, which are not in the repository.
Nothing here talks to a registry but to install dependencies; nothing is uploaded. docs/releasing.md has the story.
"""

# ruff: noqa: T201 - a script's output is its result

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jackfield.defaults import MANAGER
from jackfield_new.remotes import public_url

ROOT = Path(__file__).resolve().parent.parent
URL_VARIABLE = "JACKFIELD_REPOSITORY_URL"
TAG = re.compile(r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)-v(?P<version>\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")
HEADING = re.compile(r"^## (?P<version>\d\S*)(?: — (?P<date>\d{4}-\d\d-\d\d|unreleased))?$", re.MULTILINE)


class ReleaseError(Exception):
    """A distribution cannot be released in its current state. The message says why and what to change."""


@dataclass(frozen=True)
class Source:
    """A distribution in the repository."""

    folder: Path
    project: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.project["name"])

    @property
    def version(self) -> str:
        return str(self.project["version"])

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")

    @property
    def tag(self) -> str:
        return f"{self.name}-v{self.version}"

    @property
    def offers_plugins(self) -> bool:
        return bool(self.project.get("entry-points", {}).get("jackfield.v1"))

    @property
    def requirements(self) -> list[Requirement]:
        return [Requirement(text) for text in self.project.get("dependencies", ())]


def sources(root: Path) -> dict[str, Source]:
    """Return every distribution in the repository, by name."""
    paths = [root / "core/pyproject.toml", *sorted(root.glob("plugins/*/*/pyproject.toml"))]
    found = [Source(path.parent, tomllib.loads(path.read_text(encoding="utf-8"))["project"]) for path in paths]
    return {source.name: source for source in found}


def in_order(wanted: Sequence[str], ours: Mapping[str, Source]) -> list[Source]:
    """Return the named distributions, or all if none is named, in dependency order. Ties are ordered by name.

    Raises:
        ReleaseError: There is no distribution with one of the names.
    """
    for name in wanted:
        if name not in ours:
            raise ReleaseError(f"there is no distribution {name!r}; there are: {', '.join(ours)}")
    graph = {name: sorted(set(needs(ours[name], ours)) - {name}) for name in sorted(ours)}
    return [ours[name] for name in TopologicalSorter(graph).static_order() if not wanted or name in wanted]


def needs(source: Source, ours: Mapping[str, Source]) -> list[str]:
    """Return a distribution and all of our distributions that it needs, directly or indirectly."""
    found = [source.name]
    for name in found:
        wanted = (canonicalize_name(requirement.name) for requirement in ours[name].requirements)
        found += [one for one in wanted if one in ours and one not in found]
    return found


def named_by(tag: str, ours: Mapping[str, Source]) -> Source:
    """Return the distribution that a tag releases.

    Raises:
        ReleaseError: The tag does not name one of our distributions, or not its version in the repository.
    """
    match = TAG.fullmatch(tag)
    if match is None or match["name"] not in ours:
        raise ReleaseError(f"{tag!r} is no tag of a release: it must be NAME-vVERSION, such as jackfield-v1.2.3")
    source = ours[match["name"]]
    if source.version != match["version"]:
        raise ReleaseError(f"the tag says {match['version']}, but {source.folder}/pyproject.toml says {source.version}")
    return source


# --- checks ---


def faults(source: Source, ours: Mapping[str, Source], *, final: bool) -> list[str]:
    """Return the reasons why a distribution's files prevent a release.

    `final` is True for a real release, whose changelog entry must have a date.
    """
    found = [*_version_faults(source), *_changelog_faults(source, final=final), *_floor_faults(source, ours)]
    if final and not repository_url(os.environ):
        found.append(
            f"the repository has no public address: set {URL_VARIABLE} (in the CI, as its variable), or "
            "give git a remote 'origin'"
        )
    return found


def _version_faults(source: Source) -> list[str]:
    found = [
        f"{path.name} has __version__ = {other}, but pyproject.toml says {source.version}"
        for path in sorted((source.folder / "src" / source.package).glob("*.py"))
        for other in re.findall(r'^__version__ = "(.+)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
        if other != source.version
    ]
    manifest = source.folder / "extension/manifest.json"
    if manifest.is_file() and (other := json.loads(manifest.read_text(encoding="utf-8"))["version"]) != source.version:
        found.append(f"extension/manifest.json has the version {other}, but pyproject.toml says {source.version}")
    return found


def _changelog_faults(source: Source, *, final: bool) -> list[str]:
    path = source.folder / "CHANGELOG.md"
    if not path.is_file():
        return ["there is no CHANGELOG.md: begin one, as docs/releasing.md says"]
    first = HEADING.search(path.read_text(encoding="utf-8"))
    if first is None or first["version"] != source.version:
        return [f"CHANGELOG.md must have '## {source.version}' as its first version"]
    if final and first["date"] in (None, "unreleased"):
        return [f"CHANGELOG.md: put the day of the release after '## {source.version}', as '— 2030-01-31'"]
    return []


def _floor_faults(source: Source, ours: Mapping[str, Source]) -> list[str]:
    found = []
    for requirement in source.requirements:
        other = ours.get(canonicalize_name(requirement.name))
        if other and not requirement.specifier.contains(other.version, prereleases=True):
            found.append(f"it requires {requirement}, but the repository has {other.version}")
        elif not any(specifier.operator in (">=", "==", "~=") for specifier in requirement.specifier):
            found.append(f"it requires {requirement} without saying since which version")
    return found


# --- steps ---


def release(wanted: Sequence[Source], ours: Mapping[str, Source], *, out: Path, final: bool) -> None:
    """Take each distribution through all steps, which leave their results in `out`.

    Raises:
        ReleaseError: A distribution cannot be released.
    """
    if out.exists():
        shutil.rmtree(out)
    for source in wanted:
        found = faults(source, ours, final=final)
        if found:
            raise ReleaseError("\n".join(f"{source.name}: {fault}" for fault in found))
        built = build(source, out)
        if extension := pack_extension(source, out.with_name(f"{out.name}-extension")):
            print(f"{source.tag}: {extension.name}", flush=True)
        run(["twine", "check", "--strict", *built])
        print(f"{source.tag}: {', '.join(path.name for path in built)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        # Our own packages that a distribution needs but that are not being released: kept apart from those to publish.
        beside = Path(folder)
        for source in wanted:
            for name in (*needs(source, ours), *needs(ours[MANAGER], ours)):
                if not any(list(place.glob(f"{ours[name].package}-*.whl")) for place in (out, beside)):
                    build_wheel(ours[name], beside)
        for source in wanted:
            try_out(source, ours, wheels=[*out.glob("*.whl"), *beside.glob("*.whl")])
            print(f"{source.tag}: works where nothing else is", flush=True)


def build(source: Source, out: Path) -> list[Path]:
    """Build the sdist, and the wheel from the sdist, so that nothing missing in the former can be in the latter."""
    with tempfile.TemporaryDirectory() as folder:
        complete = Path(folder, source.name)
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "dist")
        shutil.copytree(source.folder, complete, ignore=ignored)
        add_urls(source, complete)
        record_conformance(source, complete)
        run(["uv", "build", "--quiet", "--out-dir", out, complete])
    mine = sorted(out.glob(f"{source.package}-{source.version}[-.]*"))
    if len(mine) != 2:
        raise ReleaseError(
            f"{source.name}: an sdist and a wheel were expected, there are: {[one.name for one in mine]}"
        )
    return mine


def pack_extension(source: Source, out: Path) -> Path | None:
    """Pack a distribution's browser extension for extension stores, or return None if there is none.

    The archive has its own folder, because Python package registries reject other archives.
    """
    folder = source.folder / "extension"
    if not folder.is_dir():
        return None
    out.mkdir(parents=True, exist_ok=True)
    archive = out / f"{source.name}-extension-{source.version}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            # The same files always produce the same archive.
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive


def add_urls(source: Source, complete: Path) -> None:
    """Add the repository's URLs to a copy of a distribution, if the repository has a public one."""
    repository = repository_url(os.environ)
    if not repository:
        return
    place = source.folder.relative_to(ROOT).as_posix()
    urls = {
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/{source.tag}/{place}/CHANGELOG.md",
    }
    with Path(complete, "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in urls.items()))


def repository_url(environ: Mapping[str, str]) -> str:
    """Return the repository's public URL, or '' if there is none.

    The URL comes from the CI variable, else from GitHub's own variables, else from the `origin` remote.
    """
    server, name = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_REPOSITORY")
    own = environ.get(URL_VARIABLE) or (f"{server}/{name}" if server and name else "")
    return public_url(own or run(["git", "remote", "get-url", "origin"], cwd=ROOT, may_fail=True).strip())


def record_conformance(source: Source, complete: Path) -> None:
    """Run a plugin's contract tests, and put their record into the package of its copy.

    Raises:
        ReleaseError: A test fails.
    """
    tests = source.folder / "tests/test_contract.py"
    if not (source.offers_plugins and tests.is_file()):
        return
    record = complete / "src" / source.package / "conformance.json"
    options = ["-q", "-p", "no:cacheprovider", "-p", "jackfield_testkit.conformance", f"--conformance={record}"]
    run([sys.executable, "-m", "pytest", *options, tests], cwd=ROOT)


def build_wheel(source: Source, out: Path) -> None:
    """Build an unpublished wheel with this environment's build tool, because an isolated build takes longer."""
    own = ["--wheel", "--no-build-isolation", "--python", sys.executable]
    run(["uv", "build", "--quiet", *own, "--out-dir", out, source.folder])


def try_out(source: Source, ours: Mapping[str, Source], *, wheels: Sequence[Path]) -> None:
    """Install the wheel into an empty environment, import it, and run the doctor on its plugins.

    Raises:
        ReleaseError: The wheel cannot be installed or imported, or the doctor finds a problem.
    """
    mine, doctor = (
        [wheel for wheel in wheels if wheel.name.partition("-")[0] in {ours[name].package for name in names}]
        for names in (needs(source, ours), needs(ours[MANAGER], ours))
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "venv")
        python = environment / "bin/python"
        run(["uv", "venv", "--quiet", "--python", sys.executable, environment])
        install: list[str | Path] = [
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            python,
            "--constraints",
            ROOT / "constraints.txt",
        ]
        run([*install, *mine])
        run([python, "-I", "-c", f"import {source.package}"], cwd=folder)
        run([*install, *doctor])  # a plugin need not require it
        said = run(
            [python, "-I", "-m", "jackfield", "plugins", "doctor", "--deep", "--json"], cwd=folder, may_fail=True
        )
    findings = [one for one in json.loads(said) if one["distribution"] == source.name]
    if len(findings) != source.offers_plugins or any(
        one["status"] not in ("ok", "slow", "inactive") for one in findings
    ):
        raise ReleaseError(f"{source.name}: the doctor says {findings or 'nothing of it'}")


def tag(wanted: Sequence[Source]) -> None:
    """Create the tags locally, and print the commands that push them.

    Raises:
        ReleaseError: There are uncommitted changes.
    """
    if run(["git", "status", "--porcelain"], cwd=ROOT).strip():
        raise ReleaseError("there are changes that are not committed; a tag would not have them")
    for source in wanted:
        run(["git", "tag", "--annotate", source.tag, "--message", f"{source.name} {source.version}"], cwd=ROOT)
        print(f"git push origin {source.tag}")


def run(command: Sequence[str | Path], *, cwd: str | Path | None = None, may_fail: bool = False) -> str:
    """Run a command and return its output.

    Raises:
        ReleaseError: The command failed. The message contains its whole output.
    """
    first = Path(command[0])
    # From the current environment, activated or not. Paths stay unchanged.
    beside = Path(sys.executable).parent / first
    line = [str(beside if beside.exists() else first), *map(str, command[1:])]
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603 - our own commands
    if done.returncode and not may_fail:
        raise ReleaseError(f"{' '.join(line)} gave {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """Run the requested command. Return 1 if something prevents a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="DIST", help="distributions; or `name TAG`, or `order [DIST …]`")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where to build (dist/)")
    parser.add_argument("--final", action="store_true", help="the changelog entries must have their day")
    parser.add_argument("--tag", action="store_true", help="put the tags, if all is well; implies --final")
    parser.add_argument("--dry-run", action="store_true", help="say which tags would be put")
    options = parser.parse_args(arguments)
    ours = sources(ROOT)
    try:
        match options.words:
            case ["name", text]:
                source = named_by(text, ours)
                folder = source.folder.relative_to(ROOT)
                print(f"distribution={source.name}\nversion={source.version}\nfolder={folder}")
            case ["order", *names]:
                print("\n".join(source.name for source in in_order(names, ours)))
            case names:
                wanted = in_order(names, ours)
                release(wanted, ours, out=options.out, final=options.final or options.tag)
                if options.tag and not options.dry_run:
                    tag(wanted)
                elif options.dry_run:
                    print("would put the tags: " + " ".join(source.tag for source in wanted))
    except ReleaseError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
