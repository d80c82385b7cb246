"""Models: the base class of backends, and how a model is made and asked."""

from jackfield._lazy import fetching
from jackfield.models._base import BaseChatModel, load_processors, name_of_server
from jackfield.models._factory import backend_of, get_chat_model
from jackfield.models._fold import Fold, fold
from jackfield.models._media import is_local, notes_of, path_of
from jackfield.models._pairing import OpenCall, paired
from jackfield.models._retry import MAX_DELAY_S, ONLY_BEFORE_OUTPUT, Retry, wait_before_retry
from jackfield.models._thoughts import BEGIN, ThoughtSplitter

__all__ = [
    "BEGIN",
    "MAX_DELAY_S",
    "ONLY_BEFORE_OUTPUT",
    "BaseChatModel",
    "Fold",
    "OpenCall",
    "Retry",
    "ThoughtSplitter",
    "backend_of",
    "fold",
    "get_chat_model",
    "is_local",
    "load_processors",
    "name_of_server",
    "notes_of",
    "paired",
    "path_of",
    "wait_before_retry",
]

__getattr__, _ = fetching(
    __name__,
    {},
    moved={
        "Asked": "jackfield_answers",
        "BlockingChatModel": "jackfield_backend.blocking",
        "asked_again": "jackfield_backend.retries",
        **dict.fromkeys(("MAX_FILE_BYTES", "address_of", "media_type_of", "read_media"), "jackfield_backend.media"),
        **dict.fromkeys(("STOPPED", "StopSearch", "until_stop"), "jackfield_backend.stops"),
    },
)
