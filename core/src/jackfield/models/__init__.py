"""Models: the base class for backends, and functions for creating and calling models."""

from __future__ import annotations

from jackfield.models._base import BaseChatModel, load_processors, name_of_server
from jackfield.models._factory import backend_of, get_chat_model
from jackfield.models._fold import Fold, fold
from jackfield.models._listing import ListsModels
from jackfield.models._pairing import OpenCall, pair_results
from jackfield.models._retry import MAX_DELAY_S, ONLY_BEFORE_OUTPUT, Retry, retry_request, wait_before_retry
from jackfield.models._thoughts import BEGIN, ThoughtSplitter
from jackfield.request import BatchAnswer, BatchRequest
from jackfield.results import Structured, Way

__all__ = [
    "BEGIN",
    "MAX_DELAY_S",
    "ONLY_BEFORE_OUTPUT",
    "BaseChatModel",
    "BatchAnswer",
    "BatchRequest",
    "Fold",
    "ListsModels",
    "OpenCall",
    "Retry",
    "Structured",
    "ThoughtSplitter",
    "Way",
    "backend_of",
    "fold",
    "get_chat_model",
    "load_processors",
    "name_of_server",
    "pair_results",
    "retry_request",
    "wait_before_retry",
]
