"""What is said when a model cannot be loaded: the class, and what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import (
    ConfigError,
    ModelAuthError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelRequestError,
    ModelServiceError,
)
from jackfield.models import BaseChatModel
from jackfield_transformers.errors import (
    error_of_answering,
    error_of_loading,
    translate_answering,
    translate_loading,
)
from jackfield_transformers.loading import context_of

Make = Callable[..., BaseChatModel]
SECRET = "hf_averysecrettoken"


def refusal(model: BaseChatModel) -> ModelServiceError:
    with pytest.raises(ModelServiceError) as caught:
        sync.run(model.acomplete([{"role": "user", "content": "Hi"}]))
    assert "Traceback" not in str(caught.value)
    assert SECRET not in f"{caught.value!r}{caught.value}{model!r}{model.config!r}"
    return caught.value


@pytest.fixture
def copied(qwen3: Path, tmp_path: Path) -> Path:
    """A model of which something can be taken away."""
    return Path(shutil.copytree(qwen3, tmp_path / "model"))


def test_a_folder_that_is_not_there(make: Make, tmp_path: Path) -> None:
    error = refusal(make(tmp_path / "nothing" / "here", api_key=SECRET))
    assert isinstance(error, ModelNotFoundError)
    assert "no such folder" in str(error)


def test_a_name_that_nobody_may_look_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    error = refusal(make(Path("org/name")))
    assert isinstance(error, ModelNotFoundError)
    assert "HF_HUB_OFFLINE" in str(error)
    assert "local_files_only" in str(refusal(make(Path("org/name"), local_files_only=True)))


def test_a_folder_without_a_model(make: Make, tmp_path: Path) -> None:
    error = refusal(make(tmp_path))
    assert isinstance(error, ModelNotFoundError)
    assert "contains no loadable model" in str(error)


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_folder_with_half_a_model(missing: str, make: Make, copied: Path) -> None:
    (copied / missing).unlink()
    assert str(copied) in str(refusal(make(copied)))  # the class depends on what transformers tries in its place


def test_a_model_without_a_chat_template(make: Make, copied: Path) -> None:
    (copied / "chat_template.jinja").unlink()
    error = refusal(make(copied))
    assert isinstance(error, ModelRequestError)
    assert "has no chat template" in str(error)


def _answer(model: BaseChatModel) -> str:
    return sync.run(model.acomplete([{"role": "user", "content": "Hi"}], config={"max_tokens": 3})).get_content()


def _write_templates(folder: Path, **templates: str) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    listed = [{"name": name, "template": template} for name, template in templates.items()]
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": listed}))


def test_the_default_of_several_chat_templates_is_used(make: Make, copied: Path) -> None:
    template = (copied / "chat_template.jinja").read_text()
    expected = _answer(make(copied))
    _write_templates(copied, rag="another", default=template)
    assert _answer(make(copied)) == expected
    _write_templates(copied, rag=template)
    assert "has no chat template" in str(refusal(make(copied)))


def test_folders_and_templates_of_the_users_home_are_found(
    make: Make, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(copied.parent))
    model = make(Path("~/model"), chat_template="~/model/chat_template.jinja")
    assert model.facts.context_tokens == 1024  # before it is loaded
    assert _answer(model) == _answer(make(copied))


@pytest.mark.parametrize("content", ["[1]", "{", "\udc80"])
def test_a_folder_whose_configuration_cannot_be_read_has_no_known_context(
    content: str, make: Make, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_bytes(content.encode(errors="surrogateescape"))
    assert make(tmp_path).facts.context_tokens is None


def test_code_that_comes_with_a_model_is_not_run(make: Make, copied: Path, tmp_path: Path) -> None:
    trace = tmp_path / "it-was-run"
    (copied / "own.py").write_text(f"open({str(trace)!r}, 'w').close()\nclass Own: ...\nclass OwnConfig: ...\n")
    config = json.loads((copied / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.Own"}}
    (copied / "config.json").write_text(json.dumps(config))
    error = refusal(make(copied))
    assert isinstance(error, ModelRequestError)
    assert "set trust_remote_code to true" in str(error)
    assert not trace.exists()


def test_a_model_that_does_not_continue_texts(make: Make, copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "model_type": "clip_vision_model"}))
    assert "is not a text generation model" in str(refusal(make(copied)))


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there(device: str, make: Make, qwen3: Path) -> None:
    with pytest.raises(ConfigError, match="device"):
        sync.run(make(qwen3, device=device).acomplete([{"role": "user", "content": "Hi"}]))


def test_a_template_that_is_neither_a_text_nor_a_file(make: Make, qwen3: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither a Jinja template nor a readable file.*'mine\.jinja'"):
        sync.run(make(qwen3, chat_template="mine.jinja").acomplete([{"role": "user", "content": "Hi"}]))


def test_a_failure_leaves_the_next_call_a_chance(make: Make, qwen3: Path, tmp_path: Path) -> None:
    folder = tmp_path / "later"
    model = make(folder)
    refusal(model)
    shutil.copytree(qwen3, folder)
    answer = sync.run(model.acomplete([{"role": "user", "content": "Hi"}], config={"max_tokens": 1}))
    assert answer.usage.completion_tokens == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_weights_are_of_the_wanted_type(dtype: str, make: Make, qwen3: Path) -> None:
    import torch

    model = make(qwen3, dtype=dtype, model_kwargs={"attn_implementation": "eager"})
    sync.run(model.acomplete([{"role": "user", "content": "Hi"}], config={"max_tokens": 1}))
    (found,) = model._models.values()  # type: ignore[attr-defined]
    assert found.model.dtype == getattr(torch, dtype)
    assert found.model.config._attn_implementation == "eager"


# --- errors that need a hub, or a machine, that tests have not --------------------------------------------------------


def hub_error(name: str) -> Exception:
    from huggingface_hub import errors

    error_class: Any = getattr(errors, name)
    return error_class.__new__(error_class)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "error_class", "advice"),
    [
        ("GatedRepoError", ModelAuthError, "accept its terms"),
        ("RepositoryNotFoundError", ModelNotFoundError, "check the name"),
        ("RevisionNotFoundError", ModelNotFoundError, "check `revision`"),
        ("HFValidationError", ModelNotFoundError, "names on the hub have the form org/name"),
        ("LocalEntryNotFoundError", ModelNotFoundError, "download the model first"),
        ("OfflineModeIsEnabled", ModelNotFoundError, "HF_HUB_OFFLINE"),
    ],
)
def test_what_the_hub_says_becomes_what_to_do(name: str, error_class: type[ModelServiceError], advice: str) -> None:
    wrapped = OSError("We could not load it")
    wrapped.__cause__ = hub_error(name)
    error = error_of_loading(wrapped, "org/name")
    assert type(error) is error_class
    assert advice in str(error)


def test_a_hub_that_cannot_be_reached_is_worth_another_try() -> None:
    wrapped = OSError("We could not connect")
    wrapped.__cause__ = hub_error("LocalEntryNotFoundError")
    wrapped.__cause__.__cause__ = ConnectionError("refused")
    error = error_of_loading(wrapped, "org/name")
    assert isinstance(error, ModelConnectionError)
    assert error.retryable


def test_memory_that_is_not_there_is_said_so() -> None:
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    for error in (error_of_loading(caught.value, "m"), error_of_answering(caught.value, "m")):
        assert isinstance(error, ModelRequestError)
        assert error.code == "out_of_memory"
    assert "smaller" in str(error_of_loading(MemoryError(), "m"))
    assert "shorten the history" in str(error_of_answering(caught.value, "m"))


def test_an_unknown_failure_names_its_kind_and_keeps_no_key() -> None:
    assert "ZeroDivisionError: by zero" in str(error_of_answering(ZeroDivisionError("by zero"), "m"))
    assert SECRET not in str(error_of_loading(OSError(f"401 with {SECRET}"), "m", key=SECRET))


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"max_position_embeddings": 7}, 7),
        ({"n_positions": 5}, 5),
        ({"text_config": {"max_position_embeddings": 9}}, 9),
        ({"max_seq_len": 3}, 3),
        ({"max_position_embeddings": 7, "n_positions": 5, "max_seq_len": 3}, 7),
        ({"n_positions": 5, "max_seq_len": 3}, 5),
        ({"max_position_embeddings": 7, "text_config": {"max_position_embeddings": 9}}, 7),
        ({"max_position_embeddings": 0, "n_positions": 5}, 5),
        ({"max_position_embeddings": "7", "text_config": None}, None),
        ({"max_position_embeddings": None}, None),
        ({}, None),
    ],
)
def test_the_context_is_read_from_the_models_configuration(config: dict[str, Any], wanted: int | None) -> None:
    assert context_of(config) == wanted


@pytest.mark.parametrize(
    ("error", "text", "error_class"),
    [
        (ImportError("no PIL"), "needs a package that is not installed: no PIL", ModelServiceError),
        (ValueError("set trust_remote_code=True"), "contains its own Python code", ModelRequestError),
        (ValueError("Unrecognized configuration class X"), "set images to true", ModelRequestError),
        (ValueError("odd"), "the repository 'org/name' contains no loadable model: odd", ModelNotFoundError),
        (RuntimeError("CUDA Out Of Memory"), "use a smaller model, or a different dtype or device", ModelRequestError),
        (RuntimeError("can't allocate memory"), "does not fit", ModelRequestError),
        (RuntimeError("not enough memory: x"), "does not fit", ModelRequestError),
        (MemoryError(), "does not fit", ModelRequestError),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_loaded_says_why(
    error: Exception, text: str, error_class: type[ModelServiceError]
) -> None:
    failure = error_of_loading(error, "org/name")
    assert type(failure) is error_class
    assert text in str(failure)
    assert (failure.code == "out_of_memory") == ("memory" in str(error).lower() or isinstance(error, MemoryError))
    assert failure.backend == "transformers"


@pytest.mark.parametrize("cause", ["ConnectError", "ConnectionError", "ReadTimeout"])
def test_every_failure_of_the_network_is_one_whatever_library_raises_it(cause: str) -> None:
    wrapped = OSError("We could not connect")
    wrapped.__context__ = type(cause, (Exception,), {})("x")
    assert isinstance(error_of_loading(wrapped, "org/name"), ModelConnectionError)


@pytest.mark.parametrize(
    ("error", "text", "error_class"),
    [
        (
            RuntimeError("out of memory"),
            "'m' ran out of memory: shorten the history, or lower max_tokens",
            ModelRequestError,
        ),
        (ValueError("odd"), "'m' failed: ValueError: odd", ModelServiceError),
        (ValueError(), "'m' failed: ValueError: ValueError", ModelServiceError),
    ],
)  # fmt: skip
def test_a_model_that_cannot_answer_says_why(error: Exception, text: str, error_class: type[ModelServiceError]) -> None:
    failure = error_of_answering(error, "m")
    assert (type(failure), str(failure)) == (error_class, f"transformers: {text}")


def test_errors_of_jackfield_are_left_as_they_are() -> None:
    for translate in (translate_loading, translate_answering):
        with pytest.raises(ModelAuthError, match="mine"), translate("m"):
            raise ModelAuthError("mine")
        with pytest.raises(ModelServiceError, match="odd") as caught, translate("m"):
            raise ValueError("odd")
        assert isinstance(caught.value.__cause__, ValueError)
