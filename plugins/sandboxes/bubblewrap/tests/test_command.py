"""The commands of the sandboxes, word by word: what an ordinary user's has and what root's has, whoever tests it."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.errors import ConfigError, SandboxError
from jackfield.sandboxes import Limits, Program
from jackfield_bubblewrap import bubblewrap, landlock, system
from jackfield_bubblewrap.bubblewrap import Bubblewrap
from jackfield_bubblewrap.landlock import LandlockSandbox
from jackfield_bubblewrap.plugin import sandboxes
from jackfield_bubblewrap.system import files_of_etc, parents, program_of_system, resolved

MB = 1 << 20
NAMES = ("bwrap", "prlimit", "chroot", "env")


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program of the system is installed, and bubblewrap is a new one."""
    for module in (system, bubblewrap):
        monkeypatch.setattr(module, "program_of_system", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(bubblewrap, "_can_disable_namespaces", lambda: True)


def program(folder: Path, **more: Any) -> Program:
    return Program(argv=("work", "hard"), work_dir=str(folder), **more)


def planned(command: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The plan of the guard, and the command that it runs."""
    return json.loads(command[4]), command[5:]


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_root: bool, cfg: Any = None, **more: Any) -> Any:
    monkeypatch.setattr(bubblewrap, "_is_root", lambda: is_root)
    monkeypatch.setattr(bubblewrap, "_user_for", lambda _: 4711)
    return planned(Bubblewrap(cfg).command(program(folder, **more)))


def pairs(words: list[str]) -> set[tuple[str, str]]:
    return set(pairwise(words))


APART = {
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
}


@pytest.mark.parametrize("is_root", [False, True], ids=["user", "root"])
def test_a_program_is_apart_and_ends_with_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    plan, argv = made(tmp_path, monkeypatch, is_root=is_root, leftovers="/srv/left")
    assert argv[0] == "/usr/bin/bwrap"
    assert {*argv} >= APART | {"--unshare-net"}
    assert argv[-2:] == ["work", "hard"]
    assert (plan["filter"], plan["keeps_rights"], plan["leftovers"]) == ("bubblewrap", is_root, "/srv/left")
    assert plan["group"] == {"memory_bytes": None, "processes": None}
    assert "--unshare-net" not in made(tmp_path, monkeypatch, is_root=is_root, network=True)[1]


def test_an_ordinary_user_has_a_user_namespace_and_can_make_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, argv = made(tmp_path, monkeypatch, is_root=False)
    assert {*argv} >= {"--unshare-user", "--disable-userns"}
    assert ("--chdir", str(tmp_path)) in pairs(argv)
    assert plan["gift"] is None
    assert not {"--cap-add", "--cap-drop"} & {*argv}
    monkeypatch.setattr(bubblewrap, "_can_disable_namespaces", lambda: False)
    assert "--disable-userns" not in made(tmp_path, monkeypatch, is_root=False)[1]


def test_roots_program_is_another_user_in_a_jail_who_gets_what_it_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("work", "more"):
        (tmp_path / name).mkdir()
    plan, argv = made(tmp_path / "work", monkeypatch, is_root=True, writable=(str(tmp_path / "more"),))
    assert plan["gift"] == {"user": 4711, "folders": [str(tmp_path / "work"), str(tmp_path / "more")]}
    assert ("--cap-drop", "ALL") in pairs(argv)
    added = {after for before, after in pairs(argv) if before == "--cap-add"}
    assert added == {"CAP_SETUID", "CAP_SETGID", "CAP_SYS_CHROOT"}
    inside = argv[argv.index("--") + 1 :]
    assert inside[:4] == ["/usr/bin/chroot", "--userspec=4711:4711", "--groups=", "/jail"]
    assert inside[4:] == ["/usr/bin/env", "-C", str(tmp_path / "work"), "work", "hard"]
    assert ("--chdir", "/") in pairs(argv)
    assert ("--tmpfs", "/jail") in pairs(argv)
    assert "--unshare-user" not in argv


@pytest.mark.parametrize("is_root", [False, True], ids=["user", "root"])
def test_what_is_seen_is_read_only_but_for_what_may_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    for name in ("work", "more", "seen", "work/inner"):
        (tmp_path / name).mkdir()
    prefix = "/jail" if is_root else ""
    _, argv = made(
        tmp_path / "work", monkeypatch, is_root=is_root, cfg={"tmp_mb": 3, "shm_mb": 5},
        writable=(str(tmp_path / "more"),), readable=(str(tmp_path / "seen"), str(tmp_path / "work/inner")),
    )  # fmt: skip
    binds = [
        (option, target.removeprefix(prefix))
        for option, source, target in zip(argv, argv[1:], argv[2:], strict=False)
        if option in ("--bind", "--ro-bind") and source.startswith(str(tmp_path))
    ]
    assert sorted(binds) == sorted([
        ("--bind", str(tmp_path / "work")), ("--bind", str(tmp_path / "more")), ("--ro-bind", str(tmp_path / "seen")),
        ("--ro-bind", str(tmp_path / "work/inner")),
    ])  # fmt: skip
    # The inner one last, or the writable folder would hide it.
    assert binds.index(("--ro-bind", str(tmp_path / "work/inner"))) > binds.index(("--bind", str(tmp_path / "work")))
    remounted = {after for before, after in pairs(argv) if before == "--remount-ro"}
    assert remounted == {f"{prefix}/proc", f"{prefix}/dev", prefix or "/"}
    sizes = {
        words[5]: words[1:4]
        for words in (argv[at : at + 6] for at, word in enumerate(argv) if word == "--perms")
        if words[2] == "--size"
    }
    assert sizes == {
        f"{prefix}/tmp": ["1777", "--size", str(3 * MB)], f"{prefix}/dev/shm": ["1777", "--size", str(5 * MB)]
    }  # fmt: skip
    assert {("--proc", f"{prefix}/proc"), ("--dev", f"{prefix}/dev")} <= pairs(argv)
    assert ("--dir", f"{prefix}{tmp_path}") in pairs(argv)


def test_a_link_leads_to_its_folder_and_what_may_be_written_is_not_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("work", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}-link").symlink_to(tmp_path / name)
    links = tuple(str(tmp_path / f"{name}-link") for name in ("work", "more"))
    _, argv = made(Path(links[0]), monkeypatch, is_root=False, writable=links[1:], readable=links)
    binds = [words for words in zip(argv, argv[1:], argv[2:], strict=False) if words[0] in ("--bind", "--ro-bind")]
    for name in ("work", "more"):
        for place in (tmp_path / name, tmp_path / f"{name}-link"):
            assert [words[:2] for words in binds if words[2] == str(place)] == [("--bind", str(tmp_path / name))]


@pytest.mark.parametrize("target", ["usr/lib", "/usr/lib"])
def test_a_link_of_the_system_stays_inside_the_jail(target: str, tmp_path: Path) -> None:
    link = tmp_path / "lib"
    link.symlink_to(target)
    assert [*bubblewrap._bound(str(link), prefix="/jail")] == ["--symlink", "usr/lib", f"/jail{link}"]


@pytest.mark.parametrize("is_root", [False, True], ids=["user", "root"])
def test_processes_are_counted_inside_and_two_more_in_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    limits = Limits(memory_bytes=99 * MB, cpu_s=7, processes=20, file_bytes=MB, wall_s=3)
    plan, argv = made(tmp_path, monkeypatch, is_root=is_root, limits=limits)
    at = argv.index("/usr/bin/prlimit")
    assert argv[at + 1 : at + 3] == ["--nproc=20", "--"]
    assert plan["group"] == {"memory_bytes": 99 * MB, "processes": 22}
    assert plan["limits"] == {"memory_bytes": 99 * MB, "cpu_s": 7, "processes": 20, "file_bytes": MB}
    assert "/usr/bin/prlimit" not in made(tmp_path, monkeypatch, is_root=is_root)[1]


@pytest.mark.parametrize(
    ("owner", "mapped", "user"),
    [
        (1000, {65534, "own"}, 1000),
        (0, {"own"}, "own"),
        (0, {65534}, 65534),
    ],
    ids=["the folder's", "one of its own", "nobody"],
)
def test_roots_program_is_the_owner_of_its_folder_or_a_user_that_nobody_else_is(
    owner: int, mapped: set[Any], user: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, end = bubblewrap._OWN_USERS

    def is_mapped(number: int) -> bool:
        return ("own" if first <= number < end else number) in mapped

    class Folder:
        def __init__(self, _: str) -> None: ...

        def stat(self) -> Any:
            return os.stat_result((0, 0, 0, 0, owner, 0, 0, 0, 0, 0))

    monkeypatch.setattr(bubblewrap, "_is_mapped", is_mapped)
    monkeypatch.setattr(bubblewrap, "Path", Folder)
    found = bubblewrap._user_for(str(tmp_path))
    assert first <= found < end if user == "own" else found == user


@pytest.mark.parametrize(
    ("uid_map", "mapped"),
    [
        ("         0          0 4294967295\n", {0, 1, 65534, 65536, 65537, 4294967294}),
        ("0 1000 1\n", {0}),
        ("0 1000 1\n1 100000 65536\n", {0, 1, 65534, 65536}),
    ],
)
def test_a_user_exists_if_the_map_has_a_number_for_it(
    uid_map: str, mapped: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: uid_map)
    asked = (0, 1, 65534, 65536, 65537, 4294967294)
    assert {number for number in asked if bubblewrap._is_mapped.__wrapped__(number)} == mapped


@pytest.mark.parametrize("settings", [{"tmp_mb": 0}, {"shm_mb": 0}, {"tmp_mb": 4097}, {"shm_mb": 4097}])
def test_a_folder_in_memory_has_a_bounded_size(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        Bubblewrap(settings)
    assert (Bubblewrap().config.tmp_mb, Bubblewrap().config.shm_mb) == (64, 64)


def test_the_descriptors_state_their_effects() -> None:
    assert {spec.name: spec.effects for spec in sandboxes()} == dict.fromkeys(
        ("bubblewrap", "landlock"), frozenset({"files", "processes"})
    )


# --- landlock ---


def test_the_rules_of_landlock_are_the_folders_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_has_namespaces", lambda: True)
    for name in ("work", "more", "seen"):
        (tmp_path / name).mkdir()
    more = {"writable": (str(tmp_path / "more"),), "readable": (str(tmp_path / "seen"),), "leftovers": "/srv/left"}
    limits = Limits(memory_bytes=99 * MB, processes=20)
    plan, argv = planned(LandlockSandbox().command(program(tmp_path / "work", limits=limits, **more)))
    assert argv == ["work", "hard"]
    assert plan["barriers"] == ["namespaces"]
    devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/dev/tty"}
    assert {*plan["files"]["writable"]} == {str(tmp_path / "work"), str(tmp_path / "more"), *devices}
    assert {str(tmp_path / "seen"), "/usr", "/proc"} <= {*plan["files"]["readable"]}
    assert not plan["files"]["network"]
    assert (plan["filter"], plan["leftovers"], plan["keeps_rights"]) == ("guard", "/srv/left", False)
    assert plan["group"] == {"memory_bytes": 99 * MB, "processes": 20}
    assert planned(LandlockSandbox().command(program(tmp_path, network=True)))[0]["files"]["network"]


def test_landlock_alone_isolates_no_program_with_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_has_namespaces", lambda: False)
    assert planned(LandlockSandbox().command(program(tmp_path)))[1] == ["work", "hard"]
    with pytest.raises(SandboxError, match="a program with network access cannot be isolated without namespaces"):
        LandlockSandbox().command(program(tmp_path, network=True))


# --- the system ---


def test_folders_of_python_are_those_that_no_folder_of_the_system_contains(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = ("/usr", "/usr/lib/python3", "/usr2/python", "/else/python")
    monkeypatch.setattr(system, "find_python", lambda: SimpleNamespace(readable=folders))
    assert system.folders_of_python() == ["/else/python", "/usr2/python"]


def test_only_a_program_with_the_network_reads_the_files_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda path: path.name not in ("fonts", "hosts"))
    own = {"ld.so.cache", "alternatives", "localtime", "timezone", "mime.types", "ssl/certs", "matplotlibrc"}
    networks = {"resolv.conf", "nsswitch.conf", "services", "protocols"}
    assert {*files_of_etc(network=False)} == {f"/etc/{name}" for name in own}
    assert {*files_of_etc(network=True)} == {f"/etc/{name}" for name in own | networks}


def test_folders_are_those_that_links_name_and_the_links_too(tmp_path: Path) -> None:
    for name in ("work", "more", "seen"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}-link").symlink_to(tmp_path / name)
    found = resolved(
        program(
            tmp_path / "work-link",
            writable=(str(tmp_path / "more-link"), str(tmp_path / "work")),
            readable=(str(tmp_path / "seen-link"), str(tmp_path / "missing")),
        )
    )
    assert found.work_dir == str(tmp_path / "work")
    assert found.writable == tuple(str(tmp_path / name) for name in ("work-link", "more", "more-link"))
    assert found.readable == tuple(str(tmp_path / name) for name in ("seen", "seen-link"))


def test_the_folders_above_some_paths_come_outermost_first_each_once() -> None:
    assert list(parents(["/a/b/c", "/a/d", "/e"])) == ["/a", "/a/b"]


def test_a_program_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_SBIN", str(tmp_path))
    with pytest.raises(SandboxError, match=r"^the program 'jail' is not installed$"):
        program_of_system("jail")
    (tmp_path / "jail").touch(mode=0o755)
    assert program_of_system("jail") == str(tmp_path / "jail")
