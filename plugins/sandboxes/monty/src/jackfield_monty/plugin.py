"""Plugin hooks for the `monty` sandbox."""

from __future__ import annotations

from jackfield.plugins import SandboxSpec, hook


@hook.sandboxes
def sandboxes() -> list[SandboxSpec]:
    """Provide the `monty` sandbox."""
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
