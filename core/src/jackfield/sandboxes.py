"""Sandboxes have moved to the library `jackfield-confine`; their names are fetched from there."""

from __future__ import annotations

from jackfield._lazy import fetching

_CONTRACT = "RISKS CodeResult CodeSandbox Finished Limits Program ProgramSandbox Protection Risk Sandbox"
_CHOOSING = "AUTO NONE choose_sandbox"

__getattr__, _ = fetching(
    __name__,
    {},
    moved={
        **dict.fromkeys(_CONTRACT.split(), "jackfield_confine.sandboxes"),
        **dict.fromkeys(_CHOOSING.split(), "jackfield_confine.choosing"),
    },
)
