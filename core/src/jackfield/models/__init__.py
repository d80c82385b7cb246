"""Models: the base class of backends, and how a model is made and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield._lazy import fetching
from jackfield.models._base import BaseChatModel, load_processors, name_of_server
from jackfield.models._factory import backend_of, get_chat_model
from jackfield.models._fold import Fold, fold
from jackfield.models._media import is_local, notes_of, path_of
from jackfield.models._pairing import OpenCall, paired
from jackfield.models._retry import MAX_DELAY_S, ONLY_BEFORE_OUTPUT, Retry, wait_before_retry
from jackfield.models._thoughts import BEGIN, ThoughtSplitter

if TYPE_CHECKING:
    from jackfield.models._batches import Asked, BatchAnswer, BatchRequest
    from jackfield.models._repeating import asked_again
    from jackfield.models._stops import STOPPED, StopSearch, until_stop
    from jackfield.models._structured import AskedModel, Structured, Way

__all__ = [
    "BEGIN",
    "MAX_DELAY_S",
    "ONLY_BEFORE_OUTPUT",
    "STOPPED",
    "Asked",
    "AskedModel",
    "BaseChatModel",
    "BatchAnswer",
    "BatchRequest",
    "Fold",
    "OpenCall",
    "Retry",
    "StopSearch",
    "Structured",
    "ThoughtSplitter",
    "Way",
    "asked_again",
    "backend_of",
    "fold",
    "get_chat_model",
    "is_local",
    "load_processors",
    "name_of_server",
    "notes_of",
    "paired",
    "path_of",
    "until_stop",
    "wait_before_retry",
]

__getattr__, _ = fetching(
    __name__,
    {
        **dict.fromkeys(
            (
                "Asked",
                "BatchAnswer",
                "BatchRequest",
            ),
            "models._batches",
        ),
        **dict.fromkeys(("asked_again",), "models._repeating"),
        **dict.fromkeys(
            (
                "STOPPED",
                "StopSearch",
                "until_stop",
            ),
            "models._stops",
        ),
        **dict.fromkeys(
            (
                "AskedModel",
                "Structured",
                "Way",
            ),
            "models._structured",
        ),
    },
)
