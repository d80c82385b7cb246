"""The names that source uses of other packages are read from its syntax; those that may be missing do not count."""

from __future__ import annotations

import ast

import pytest

from jackfield_manage.judging.misfits import misfits_of_package
from jackfield_manage.judging.used_names import required_nodes, used_names
from tests.support.site import FakeSite

SOURCES = {
    "from wool import yarn, dye as colour": ["wool.yarn", "wool.dye"],
    "from wool.mill import loom": ["wool.mill.loom"],
    "import wool.mill": ["wool.mill"],
    "import wool\nwool.yarn.length": ["wool", "wool.yarn.length", "wool.yarn"],
    "import wool.mill as m\ndef f(): return m.loom": ["wool.mill", "wool.mill.loom"],
    "import wool.mill\nwool.mill.loom": ["wool.mill", "wool.mill.loom", "wool.mill"],
    "import flax, wool.mill, wool.fold as f\nf.lamb": ["wool.mill", "wool.fold", "wool.fold.lamb"],
    "from wool import *": [],
    "import flax\nflax.yarn": [],
    "from .wool import yarn": [],
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from wool import yarn": [],
    "if typing.TYPE_CHECKING:\n    import wool\nelse:\n    from wool import yarn": ["wool.yarn"],
    "try:\n    from wool import yarn\nexcept: pass": [],
    "try:\n    from wool import yarn\nexcept AttributeError: pass": [],
    "try:\n    from wool import yarn\nexcept OSError: pass\nexcept ImportError: pass": [],
    "try:\n    def f():\n        from wool import yarn\nexcept ImportError: pass\nfinally:\n    import wool": ["wool"],
    "try:\n    from wool import yarn\nexcept ImportError:\n    from wool import thread": ["wool.thread"],
    "try:\n    from wool import yarn\nexcept (OSError, ModuleNotFoundError): pass": [],
    "try:\n    from wool import yarn\nexcept OSError: pass": ["wool.yarn"],
    "try:\n    pass\nexcept ImportError: pass\nelse:\n    from wool import yarn": ["wool.yarn"],
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_names_that_must_be_there_are_used_names(source: str) -> None:
    names = used_names(required_nodes(ast.parse(source)), lambda module: module.partition(".")[0] == "wool")
    assert list(names) == SOURCES[source]


def test_only_a_name_that_is_missing_is_a_misfit(site: FakeSite) -> None:
    site.add(
        "jackfield-wool",
        version="0.2",
        modules={
            "jackfield_wool.__init__": "from jackfield_wool.mill import Loom",
            "jackfield_wool.mill": "class Loom: ...",
            "jackfield_wool.broken": "import not_there",
        },
    )
    source = """
        from jackfield.tools import BaseTool, Gone
        from jackfield_wool import Loom, mill, broken
        from jackfield_wool.mill import Loom, Shuttle
        import jackfield_wool.mill as m
        def work(): return m.Loom.speed, m.Shuttle.speed, jackfield_wool.spin
        import jackfield_wool
        from jackfield_never import anything
    """
    text = "\n".join(line.strip() for line in source.splitlines())
    site.add(
        "acme", modules={"acme.__init__": "raise SystemExit", "acme.heavy": text}, requires=["jackfield-wool>=0.1"]
    )
    assert [misfit.name for misfit in misfits_of_package("acme")] == [
        "jackfield.tools.Gone", "jackfield_wool.mill.Shuttle", "jackfield_wool.spin",
    ]  # fmt: skip
