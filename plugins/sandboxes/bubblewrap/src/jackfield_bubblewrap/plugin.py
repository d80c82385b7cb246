"""Plugin hooks for the Linux sandboxes."""

from __future__ import annotations

from jackfield.plugins import SandboxSpec, hook

EFFECTS = frozenset({"files", "processes"})


@hook.sandboxes
def sandboxes() -> list[SandboxSpec]:
    """Provide bubblewrap, and Landlock as its fallback."""
    return [
        SandboxSpec(
            name="bubblewrap",
            target="jackfield_bubblewrap.bubblewrap:Bubblewrap",
            config="jackfield_bubblewrap.config:BubblewrapConfig",
            summary="Programs in namespaces of their own: only their folders can be written, and there is no network.",
            check="jackfield_bubblewrap.checks:problems",
            effects=EFFECTS,
        ),
        SandboxSpec(
            name="landlock",
            target="jackfield_bubblewrap.landlock:LandlockSandbox",
            summary="Programs kept from files by the kernel alone, and from the rest if it has user namespaces.",
            effects=EFFECTS,
        ),
    ]
