"""The index of the core's names that the testkit ships is the core's."""

from __future__ import annotations

import importlib
import json
from importlib import metadata
from pathlib import Path

from packaging.version import Version

from jackfield_testkit.api_index import index_for, indexes
from scripts.api_index import write_index


def test_the_index_of_this_core_is_up_to_date(tmp_path: Path) -> None:
    core = metadata.version("jackfield")
    made = json.loads(write_index(tmp_path, core).read_text(encoding="utf-8"))["modules"]
    assert index_for(Version(core), indexes()) == made, "the core's names have changed: run `make known`"


def test_every_name_in_the_index_can_be_imported() -> None:
    index = index_for(Version(metadata.version("jackfield")), indexes())
    assert index is not None
    missing = [
        f"{module}.{name}"
        for module, names in index.items()
        for name in names
        if f"{module}.{name}" not in index and not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []
