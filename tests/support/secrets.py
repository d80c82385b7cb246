"""Secrets of tests: values that look like keys, and a collection of any."""

from __future__ import annotations

from jackfield.secrets import Secret, Secrets

KEY = "sk-proj-Zq83bXw4Rk2LpV7Tn"
OTHER = "Qw9-Lk2mZx81PvTn4"


def known(*values: str) -> Secrets:
    return Secrets(Secret(f"KEY_{number}", value) for number, value in enumerate(values))
