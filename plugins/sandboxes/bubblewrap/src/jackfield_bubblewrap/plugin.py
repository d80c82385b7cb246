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
            summary="Runs programs in separate namespaces: only their own folders are writable, and the network "
            "is off by default.",
            check="jackfield_bubblewrap.checks:problems",
            effects=EFFECTS,
        ),
        SandboxSpec(
            name="landlock",
            target="jackfield_bubblewrap.landlock:LandlockSandbox",
            summary="Restricts file access through the kernel alone, and everything else if user namespaces are "
            "available.",
            effects=EFFECTS,
        ),
    ]
