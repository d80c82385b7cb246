"""The model, loaded once for each module of tests."""

from __future__ import annotations

import pytest

from jackfield_multilingual_embedder.model import Model, shared_model


@pytest.fixture(scope="module")
def model() -> Model:
    """Return the model; while a test holds it, embedders share it instead of loading it again."""
    return shared_model()
