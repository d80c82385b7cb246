"""Find secrets that a component reveals or fails to declare."""

from __future__ import annotations

import pickle
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from jackfield.secrets import Secrets, secrets_in

HOW_TO_STATE = (
    "records would reveal this secret: keep it in `config`, in an attribute named like a secret or as SecretStr, "
    "or override `secret_sources`; see docs/guides/secrets.md"
)


def secrets_of_settings(settings: object) -> list[str]:
    """Return the secrets in a component's settings, except those too weak to hide."""
    known = dict.fromkeys(secret.value for secret in secrets_in(settings))
    hides = Secrets(secrets_in(settings))
    return [value for value in known if value not in hides.hide(value)]


def unstated(component: object, secrets: Collection[str]) -> list[str]:
    """Return the secrets that the records of a run with this component would reveal."""
    known = Secrets(secrets_in(component))
    return [secret for secret in secrets if secret in known.hide(f"it is {secret}, is it")]


def texts_of(component: object) -> dict[str, str]:
    """Return a component's text representations by name: its `repr`, its `str`, and its pickle if possible."""
    pickled = b""
    with suppress(TypeError, AttributeError, pickle.PicklingError):  # many hold locks or connections
        pickled = pickle.dumps(component)
    return {"repr": repr(component), "str": str(component), "pickle": pickled.decode("latin-1")}


def places_with(secrets: Collection[str], texts: dict[str, str], folder: Path) -> list[str]:
    """Return the names of texts, and of files in a folder, that contain a secret."""
    files = {str(path): path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()}
    return [name for name, text in {**texts, **files}.items() if any(secret in text for secret in secrets)]
