"""Models: the base class of backends, and how a model is made and asked."""

from jackfield.models._base import BaseChatModel, BlockingChatModel, load_processors, name_of_server
from jackfield.models._batch import Asked
from jackfield.models._factory import backend_of, get_chat_model
from jackfield.models._fold import Fold, fold
from jackfield.models._media import MAX_FILE_BYTES, address_of, is_local, media_type_of, notes_of, path_of, read_media
from jackfield.models._pairing import OpenCall, paired
from jackfield.models._retry import ONLY_BEFORE_OUTPUT, Retry, asked_again
from jackfield.models._stops import STOPPED, StopSearch, until_stop
from jackfield.models._thoughts import BEGIN, ThoughtSplitter

__all__ = [
    "BEGIN",
    "MAX_FILE_BYTES",
    "ONLY_BEFORE_OUTPUT",
    "STOPPED",
    "Asked",
    "BaseChatModel",
    "BlockingChatModel",
    "Fold",
    "OpenCall",
    "Retry",
    "StopSearch",
    "ThoughtSplitter",
    "address_of",
    "asked_again",
    "backend_of",
    "fold",
    "get_chat_model",
    "is_local",
    "load_processors",
    "media_type_of",
    "name_of_server",
    "notes_of",
    "paired",
    "path_of",
    "read_media",
    "until_stop",
]
