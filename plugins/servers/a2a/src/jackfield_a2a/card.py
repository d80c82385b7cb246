"""The card of an agent."""

from __future__ import annotations

from importlib.metadata import version

from jackfield.servers import RequestRefusedError
from jackfield_a2a.rpc import Wire
from jackfield_serving import AgentInfo

PROTOCOL_VERSION = "1.0"
_KINDS = ("image", "audio", "video")


def card_of(info: AgentInfo, url: str, *, has_tokens: bool) -> Wire:
    """Return the card of an agent.

    Args:
        info: The agent.
        url: The address of its requests.
        has_tokens: Requests need a token.
    """
    description = info.description or f"The agent {info.name}."
    takes = dict(zip(_KINDS, (info.images, info.audio, info.video), strict=True))
    card: Wire = {
        "name": info.name,
        "description": description,
        "version": version("jackfield-a2a"),
        # Fields of A2A 0.3, which some directories and linters look for.
        "url": url,
        "protocolVersion": PROTOCOL_VERSION,
        "supportedInterfaces": [
            {"url": url, "protocolBinding": binding, "protocolVersion": PROTOCOL_VERSION}
            for binding in ("JSONRPC", "HTTP+JSON")
        ],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "defaultInputModes": [
            "text/plain",
            "application/json",
            *(f"{kind}/*" for kind in _KINDS if takes[kind]),
            *(["application/pdf"] if info.files else []),
        ],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "ask", "name": info.name, "description": description, "tags": ["agent"]}],
    }
    if has_tokens:
        card["securitySchemes"] = {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}
        card["securityRequirements"] = [{"schemes": {"token": {"list": []}}}]
    return card


def check_version(header: str | None) -> None:
    """Refuse other versions of the protocol. As A2A specifies, a request without a version has 0.3.

    Raises:
        RequestRefusedError: The request has another version.
    """
    asked = header or "0.3"
    if asked.partition(".")[0] != PROTOCOL_VERSION.partition(".")[0]:
        raise RequestRefusedError(
            f"A2A {asked[:20]} is not supported: send the header A2A-Version: {PROTOCOL_VERSION}", code="version"
        )
