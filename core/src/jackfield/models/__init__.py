"""Models: what a backend extends, and how one is made and asked."""

from jackfield.models.base import BaseChatModel, BlockingChatModel
from jackfield.models.batch import Asked
from jackfield.models.factory import get_chat_model
from jackfield.models.fold import Fold, fold
from jackfield.models.retry import Retry

__all__ = ["Asked", "BaseChatModel", "BlockingChatModel", "Fold", "Retry", "fold", "get_chat_model"]
