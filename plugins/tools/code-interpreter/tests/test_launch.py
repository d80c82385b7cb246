"""How a kernel is started is decided in one place, and nothing secret goes along."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield.sandboxes import Limits
from jackfield_code_interpreter.config import CodeInterpreterConfig
from jackfield_code_interpreter.launch import KernelFolders, kernel_launch, limits_of, stated_limits
from jackfield_code_interpreter.tool import CodeInterpreter
from jackfield_testkit.forks import output_of


@pytest.fixture
def folders(tmp_path: Path) -> KernelFolders:
    return KernelFolders(tmp_path / "work", tmp_path, tmp_path / "k1")


def test_only_what_is_named_is_inherited(folders: KernelFolders) -> None:
    environ = {"OPENAI_API_KEY": "sk-1", "PYTHONPATH": "/x", "PATH": "/bin", "AWS_SECRET": "s", "LANG": "C.UTF-8"}
    env = kernel_launch(CodeInterpreterConfig(env={"MINE": "1"}), folders, environ=environ).env
    assert env["PATH"] == "/bin"
    assert env["MINE"] == "1"
    assert env["HOME"] == str(folders.home)
    assert not {"OPENAI_API_KEY", "PYTHONPATH", "AWS_SECRET"} & set(env)


def test_a_limit_of_none_is_no_limit() -> None:
    assert limits_of(CodeInterpreterConfig(memory_mb=None, cpu_s=None, processes=None, file_mb=None)) == Limits()
    assert limits_of(CodeInterpreterConfig(memory_mb=512, file_mb=1)).memory_bytes == 512 << 20


@pytest.mark.skipif(os.getuid() != 0, reason="only root's processes are not counted")
def test_a_limit_that_is_not_enforced_is_not_claimed() -> None:
    assert stated_limits(CodeInterpreterConfig())["processes"] == "not enforced for root"


def test_a_misspelt_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"code_interpreter: unknown setting 'timeot'; did you mean 'timeout'"):
        CodeInterpreter({"timeot": 3})


IMPORTS = """
import json, sys
import jackfield_code_interpreter.plugin, jackfield_code_interpreter.tool
print(json.dumps([name for name in ("jupyter_client", "ipykernel", "zmq", "matplotlib") if name in sys.modules]))
"""


def test_nothing_of_jupyter_is_loaded_before_the_first_call() -> None:
    assert json.loads(output_of(IMPORTS)) == []
