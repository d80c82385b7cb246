"""Sandboxes that do all as they should, and sandboxes that do one thing otherwise. They need bubblewrap."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jackfield.errors import SandboxError
from jackfield.sandboxes import CodeResult, CodeSandbox, Finished, Limits, Program, ProgramSandbox, Protection
from jackfield_confine.guarding import FileRules, guarded
from jackfield_confine.syscalls import build_filter, filters_this_machine

COVERED: Any = frozenset({"files", "network", "processes", "memory", "cpu", "file_size"})
PYTHON = tuple(os.path.realpath(folder) for folder in {sys.prefix, sys.base_prefix})


class Honest(ProgramSandbox):
    """Bubblewrap, with the rest of the system to be read but for the folder of temporary files."""

    system = ("--ro-bind", "/", "/", "--tmpfs", tempfile.gettempdir(), "--dev", "/dev")
    apart = ("--unshare-pid", "--proc", "/proc", "--unshare-ipc")
    bound = "--unshare-net"
    mortal = ("--die-with-parent", "--new-session")
    readable, writable = "--ro-bind", "--bind"
    limited = ("memory", "cpu", "file_size")
    filtered = True

    def protection(self) -> Protection:
        return Protection("bubblewrap", COVERED)

    def command(self, program: Program) -> list[str]:
        reads = [*(path for path in (*PYTHON, sys.prefix) if Path(path).is_dir()), *program.readable]
        return [
            *(_WITH_FILTER if self.filtered else ["bwrap"]),
            *self.system,
            *(word for path in reads for word in (self.readable, path, path)),
            *(word for path in (program.work_dir, *program.writable) for word in (self.writable, path, path)),
            *(() if program.network else (self.bound,)),
            *self.apart,
            *self.mortal,
            *("--chdir", program.work_dir, "--"),
            *self.limits(program.limits),
            *program.argv,
        ]

    def limits(self, limits: Limits) -> list[str]:
        values = {"memory": limits.memory_bytes, "cpu": limits.cpu_s, "file_size": limits.file_bytes}
        names = {"memory": "as", "cpu": "cpu", "file_size": "fsize"}
        options = [f"--{names[name]}={values[name]}" for name in self.limited if values[name]]
        return ["prlimit", *options, "--"] if options else []


def _with_filter() -> list[str]:
    """Bubblewrap with the filter of system calls of `jackfield-confine`, which it reads from a descriptor."""
    file = Path(tempfile.gettempdir(), f"jackfield-zoo-{os.getpid()}.bpf")
    file.write_bytes(build_filter(os.uname().machine, shares_machine=False))
    atexit.register(file.unlink, missing_ok=True)
    return ["sh", "-c", 'file=$0; exec "$@" 9<"$file"', str(file), "bwrap", "--seccomp", "9"]


_WITH_FILTER = _with_filter() if filters_this_machine() else ["bwrap"]


class Boasts(Honest):
    def protection(self) -> Protection:
        return Protection("everything", frozenset({*COVERED, "aliens"}))


class CoversNothing(Honest):
    def protection(self) -> Protection:
        return Protection("bubblewrap", frozenset())


class Wavers(Honest):
    """Each of its objects has something else to say."""

    def protection(self) -> Protection:
        return Protection(f"bubblewrap {id(self)}", COVERED)


class RunsNothing(Honest):
    def command(self, program: Program) -> list[str]:
        return ["true"]


class ForgetsTheEnvironment(Honest):
    def command(self, program: Program) -> list[str]:
        return ["env", "-i", f"PATH={os.defpath}", *super().command(program)]


class WritesNothing(Honest):
    writable = "--ro-bind"


class HidesReadable(Honest):
    def command(self, program: Program) -> list[str]:
        return super().command(replace(program, readable=()))


class NeverConnects(Honest):
    def command(self, program: Program) -> list[str]:
        return super().command(replace(program, network=False))


class SplitsPaths(Honest):
    def command(self, program: Program) -> list[str]:
        joined = " ".join(super().command(replace(program, argv=())))
        return ["sh", "-c", f"{joined} {shlex.join(program.argv)}"]


class ForgetsTheCode(Honest):
    def command(self, program: Program) -> list[str]:
        return ["sh", "-c", '"$@"; exit 0', "sh", *super().command(program)]


class HandsOnTheEnvironment(Honest):
    def command(self, program: Program) -> list[str]:
        return ["env", *(f"{name}={value}" for name, value in os.environ.items()), *super().command(program)]


class Forgets(Honest):
    """What is written goes with it."""

    def command(self, program: Program) -> list[str]:
        return super().command(replace(program, argv=("sh", "-c", 'cd /tmp && exec "$@"', "sh", *program.argv)))


class NeverStops(Honest):
    async def run(self, program: Program, *, stdin: bytes = b"", output_bytes: int = 1 << 20) -> Finished:
        program = replace(program, limits=replace(program.limits, wall_s=None))
        return await super().run(program, stdin=stdin, output_bytes=output_bytes)


class ReadsAll(Honest):
    system = ("--ro-bind", "/", "/", "--dev", "/dev")


class WritesAll(Honest):
    system = ("--bind", "/", "/", "--dev", "/dev")


class WritesReadable(Honest):
    readable = "--bind"


class SharesTheNetwork(Honest):
    bound = "--unshare-uts"


class SharesProcesses(Honest):
    apart = ()


class IgnoresMemory(Honest):
    limited = ("cpu", "file_size")


class IgnoresFiles(Honest):
    limited = ("memory", "cpu")


class IgnoresCPU(Honest):
    limited = ("memory", "file_size")


class Unfiltered(Honest):
    """Leaves memory that is no address space, and bits that let a file run as its owner."""

    filtered = False


class HoldsMemory(Unfiltered):
    pass


class LeavesSetUid(Unfiltered):
    pass


class LetsItselfBeTraced(Unfiltered):
    """Its first process is the parent of the program, and stops when that traces it."""


class OnlyLandlock(Honest):
    """Landlock and nothing else: no namespaces, and no filter of system calls."""

    def command(self, program: Program) -> list[str]:
        reads = ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/dev", *PYTHON, sys.prefix, *program.readable)
        rules = FileRules(readable=reads, writable=(program.work_dir, *program.writable), network=program.network)
        return guarded(program.argv, limits=program.limits, files=rules)


class ChangesAttributes(OnlyLandlock):
    pass


class ReachesSockets(OnlyLandlock):
    pass


class SpeaksUDP(OnlyLandlock):
    pass


class ShowsProcesses(OnlyLandlock):
    pass


class CountsEachAlone(Honest):
    def protection(self) -> Protection:
        return Protection("bubblewrap", COVERED | {"total_memory"})


class NeverWorks(Honest):
    def protection(self) -> Protection:
        raise SandboxError("the stars are wrong")


class CountsNothing(Honest):
    def protection(self) -> Protection:
        return Protection("bubblewrap", COVERED | {"process_count"})


class Mute(CountsNothing):
    async def run(self, program: Program, *, stdin: bytes = b"", output_bytes: int = 1 << 20) -> Finished:
        return replace(await super().run(program, stdin=stdin, output_bytes=output_bytes), stdout=b"")


class LeavesOrphans(Honest):
    apart = mortal = ()


class OutlivesItsHost(Honest):
    mortal = ()


# --- sandboxes that run code ---

RUNNER = """
import ast, contextlib, io, json, sys
asked = json.load(sys.stdin)
out, value, error = io.StringIO(), None, ""
with contextlib.redirect_stdout(out):
    try:
        tree = ast.parse(asked["code"])
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "code", "exec"), asked["values"])
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "code", "eval"), asked["values"])
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
print(json.dumps([value, out.getvalue(), error]))
"""


class HonestCode(CodeSandbox):
    """Runs code in a process of its own."""

    within = Honest

    def protection(self) -> Protection:
        return Protection("process", COVERED)

    async def run_code(
        self, code: str, *, values: Mapping[str, object] | None = None, limits: Limits | None = None
    ) -> CodeResult:
        asked = json.dumps({"code": code, "values": dict(values or {})}).encode()
        with tempfile.TemporaryDirectory() as folder:
            program = Program(
                argv=(sys.executable, "-I", "-c", RUNNER), work_dir=folder, limits=limits or Limits(), network=False
            )
            done = await self.within().run(program, stdin=asked)
        if not done.stdout:
            return CodeResult(error="it was ended")
        return CodeResult(*json.loads(done.stdout))


class BoastsOfCode(HonestCode):
    def protection(self) -> Protection:
        return Protection("", COVERED)


class Describes(HonestCode):
    async def run_code(self, code: str, **more: Any) -> CodeResult:
        done = await super().run_code(code, **more)
        return replace(done, value=repr(done.value))


class KeepsQuiet(HonestCode):
    async def run_code(self, code: str, **more: Any) -> CodeResult:
        return replace(await super().run_code(code, **more), stdout="")


class TakesNothing(HonestCode):
    async def run_code(self, code: str, *, values: Any = None, **more: Any) -> CodeResult:
        return await super().run_code(code, **more)


class HidesErrors(HonestCode):
    async def run_code(self, code: str, **more: Any) -> CodeResult:
        return replace(await super().run_code(code, **more), error="")


class HasValuesOfErrors(HonestCode):
    async def run_code(self, code: str, **more: Any) -> CodeResult:
        done = await super().run_code(code, **more)
        return replace(done, value=done.error or done.value)


class Complains(HonestCode):
    async def run_code(self, code: str, **more: Any) -> CodeResult:
        done = await super().run_code(code, **more)
        return replace(done, error=done.error or "code of no value")


class Remembers(HonestCode):
    def __init__(self, cfg: Any = None) -> None:
        super().__init__(cfg)
        self.said = ""

    async def run_code(self, code: str, **more: Any) -> CodeResult:
        self.said += f"{code}\n"
        return await super().run_code(self.said, **more)


class Patient(HonestCode):
    async def run_code(self, code: str, *, limits: Any = None, **more: Any) -> CodeResult:
        return await super().run_code(code, **more)


class ReadsFiles(HonestCode):
    within = ReadsAll


class Calls(HonestCode):
    within = SharesTheNetwork
