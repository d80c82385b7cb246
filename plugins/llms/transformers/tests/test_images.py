"""A model that sees: a Llava, tiny and with random weights, with its image processor."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import UnsupportedInputError
from jackfield.messages import ASSISTANT, FUNCTION, USER, ContentItem, Message, ModelResponse
from jackfield.models import BaseChatModel
from jackfield_transformers.prompt import template_messages

pytest.importorskip("PIL")
Make = Callable[..., BaseChatModel]

TEMPLATE = """\
{% for message in messages %}[{{ message.role }}] {% for part in message.content %}\
{% if part.type == 'image' %}<image>
{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"""
GREEDY = {"temperature": 0, "max_tokens": 6}


@pytest.fixture(scope="module")
def llava(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llava whose images are 2 by 2 patches, and one token more."""
    import copy

    import torch
    import transformers

    library: Any = transformers
    torch.manual_seed(7)
    own = copy.deepcopy(tokenizer)
    own.add_tokens(["<image>"], special_tokens=True)
    image_token = own.convert_tokens_to_ids("<image>")
    # Transformers 5 has two of each kind; this one needs no torchvision.
    pictures = getattr(library, "CLIPImageProcessorPil", library.CLIPImageProcessor)(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    processor = library.LlavaProcessor(
        image_processor=pictures,
        tokenizer=own,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    )
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = library.LlavaForConditionalGeneration(
        library.LlavaConfig(
            vision_config=library.CLIPVisionConfig(**sizes, image_size=28, patch_size=14, projection_dim=64),
            text_config=library.LlamaConfig(
                **sizes, vocab_size=len(own), bos_token_id=None, eos_token_id=own.eos_token_id
            ),
            image_token_index=image_token,
        )
    )
    folder = tmp_path_factory.mktemp("llava")
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture
def pictures(tmp_path: Path) -> dict[str, Path]:
    from PIL import Image

    made = {colour: tmp_path / f"{colour}.png" for colour in ("red", "blue")}
    for colour, path in made.items():
        Image.new("RGB", (64, 48), colour).save(path)
    return made


def ask(model: BaseChatModel, *history: Message) -> ModelResponse:
    return sync.run(model.acomplete(history, config=GREEDY))


def about(*items: ContentItem) -> Message:
    return Message(USER, [ContentItem(text="What is it?"), *items])


def test_an_image_is_seen(llava: Path, make: Make, pictures: dict[str, Path]) -> None:
    model = make(llava, images=True)
    assert model.facts.images
    without = ask(model, about())
    red = ask(model, about(ContentItem(image=str(pictures["red"]))))
    assert red.usage.prompt_tokens >= without.usage.prompt_tokens + 4  # its patches
    assert red.usage.completion_tokens == 6
    inline = base64.b64encode(pictures["red"].read_bytes()).decode()
    assert ask(model, about(ContentItem(image=f"data:image/png;base64,{inline}"))) == red
    assert ask(model, about(ContentItem(image=pictures["red"].as_uri()))) == red
    assert ask(model, about(ContentItem(image=f"DATA:image/png;base64,{inline}"))) == red


def test_the_image_of_a_tools_result_is_seen_as_well(llava: Path, make: Make, pictures: dict[str, Path]) -> None:
    model = make(llava, images=True, native_tools=True)
    call = Message("assistant", "", function_call={"name": "look", "arguments": "{}"})
    texts = [Message(USER, "Look."), call, Message(FUNCTION, "done", name="look")]
    seen = Message(FUNCTION, [ContentItem(text="done"), ContentItem(image=str(pictures["red"]))], name="look")
    assert ask(model, *texts[:2], seen).usage.prompt_tokens >= ask(model, *texts).usage.prompt_tokens + 4


def test_a_damaged_image_and_one_of_too_many_pixels_are_refused(
    llava: Path, make: Make, pictures: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    model, seen = make(llava, images=True), about(ContentItem(image=str(pictures["red"])))
    whole = pictures["red"].read_bytes()
    pictures["red"].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnsupportedInputError, match=r"an image cannot be read \(OSError\)"):
        ask(model, seen)
    pictures["red"].write_bytes(whole)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(UnsupportedInputError, match=r"an image cannot be read \(DecompressionBombError\)"):
        ask(model, seen)


def test_an_empty_answer_at_the_end_is_followed_by_another(llava: Path, make: Make) -> None:
    import transformers

    history = [about(), Message(ASSISTANT, "")]
    library: Any = transformers
    wanted = library.AutoProcessor.from_pretrained(llava).apply_chat_template(
        template_messages(history, in_parts=True), add_generation_prompt=True, tokenize=True, return_dict=True
    )
    assert ask(make(llava, images=True), *history).usage.prompt_tokens == len(wanted["input_ids"][0])


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("https://example.org/a.png", "does not fetch URLs"),
        ("missing.png", "cannot read the image"),
        ("data:image/png;base64,bm90IGFuIGltYWdl", "convert it to PNG or JPEG"),
        ("data:image/png;base64,x", "not valid base64"),
        ("data:image/png,bm90IGFuIGltYWdl", "or a base64 data: URI"),
        (__file__, "expected an image"),
    ],
)
def test_what_is_no_image_here_is_refused(address: str, says: str, llava: Path, make: Make) -> None:
    with pytest.raises(UnsupportedInputError, match=says):
        ask(make(llava, images=True), about(ContentItem(image=address)))
