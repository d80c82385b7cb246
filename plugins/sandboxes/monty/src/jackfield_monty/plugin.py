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
            summary="Runs short Python code in a separate interpreter, without packages, files or network.",
            config="jackfield_monty.sandbox:MontyConfig",
            effects=frozenset({"processes"}),
            runs_programs=False,
            runs_code=True,
        )
    ]
