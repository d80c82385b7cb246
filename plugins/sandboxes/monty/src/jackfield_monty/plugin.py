"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import SandboxSpec, hook


@hook.sandboxes
def sandboxes() -> list[SandboxSpec]:
    """Return the sandbox `monty`."""
    return [
        SandboxSpec(
            name="monty",
            target="jackfield_monty.sandbox:MontySandbox",
            summary="Runs short Python code in an interpreter of its own, without packages, files and network.",
            config="jackfield_monty.sandbox:MontyConfig",
            effects=frozenset({"processes"}),
            runs_programs=False,
            runs_code=True,
        )
    ]
