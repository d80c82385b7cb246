"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jackfield.messages import Message
from jackfield.processors import Processor
from jackfield_redaction.processor import Redaction
from jackfield_testkit.suites import PluginSuite, ProcessorSuite


class TestPlugin(PluginSuite):
    dist = "jackfield-redaction"


class TestPlaceholders(ProcessorSuite):
    component = "jackfield-redaction/redaction"
    messages: ClassVar[Sequence[Message]] = (Message("user", "Write to bob@example.com or call +49 30 123456."),)
    texts: ClassVar[Sequence[str]] = (
        "Done: [EMAIL_1]",
        "[PHONE_1][EMAIL_1] and [EMAIL_2], [EMAIL_[EMAIL_1]]",
        "[EMAIL_1",
        "[[[",
    )
    max_held = 42


class TestRemoval(ProcessorSuite):
    component = "jackfield-redaction/redaction"
    config: ClassVar[Mapping[str, Any]] = {"mode": "remove"}
    texts: ClassVar[Sequence[str]] = (
        "Write to bob@example.com, or call (555) 123-4567.",
        "4111 1111 1111 1111 123 and DE89 3704 0044 0532 0130 00 AND 2001:db8::1",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
    )
    max_held = 66

    def make_processor(self) -> Processor:
        return Redaction(**self.config)
