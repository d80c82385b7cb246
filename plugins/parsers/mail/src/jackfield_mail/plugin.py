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
            summary="Mails as they are sent: headers, text, attached mails; other attachments by their own parsers.",
            extensions=("eml", "mht", "mhtml"),
            media_types=("message/rfc822", "multipart/related"),
            has_parts=True,
        ),
        ParserSpec(
            name="msg",
            target="jackfield_mail.msg:MsgParser",
            summary="Messages of Outlook: headers, text, attached messages; other attachments by their own parsers.",
            extensions=("msg", "oft"),
            media_types=("application/vnd.ms-outlook",),
            has_parts=True,
        ),
    ]
