"""Build agent cards and check the protocol version."""

from __future__ import annotations

from importlib.metadata import version

from jackfield.servers import RequestRefusedError
from jackfield_a2a.rpc import Wire
from jackfield_serving import AgentInfo

PROTOCOL_VERSION = "1.0"
_KINDS = ("image", "audio", "video")


def card_of(info: AgentInfo, url: str, *, has_tokens: bool) -> Wire:
    """Return an agent's card.

    Args:
        info: The agent.
        url: The URL to which clients send requests.
        has_tokens: True if requests must carry a bearer token.
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
    """Refuse unsupported protocol versions. A request without a version counts as 0.3, as A2A specifies.

    Raises:
        RequestRefusedError: The request's version is not supported.
    """
    asked = header or "0.3"
    if asked.partition(".")[0] != PROTOCOL_VERSION.partition(".")[0]:
        raise RequestRefusedError(
            f"A2A {asked[:20]} is not supported: send the header A2A-Version: {PROTOCOL_VERSION}", code="version"
        )
