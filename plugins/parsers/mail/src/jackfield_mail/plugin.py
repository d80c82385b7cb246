"""Plugin hooks for the email parsers."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parsers for emails."""
    return [
        ParserSpec(
            name="eml",
            target="jackfield_mail.eml:EmlParser",
            summary="Emails in raw format: headers, text, attached emails; other attachments through the "
            "parsers for their types.",
            extensions=("eml", "mht", "mhtml"),
            media_types=("message/rfc822", "multipart/related"),
            has_parts=True,
        ),
        ParserSpec(
            name="msg",
            target="jackfield_mail.msg:MsgParser",
            summary="Outlook messages: headers, text, attached messages; other attachments through the parsers "
            "for their types.",
            extensions=("msg", "oft"),
            media_types=("application/vnd.ms-outlook",),
            has_parts=True,
        ),
    ]
