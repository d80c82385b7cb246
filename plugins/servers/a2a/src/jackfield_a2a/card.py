"""The card of an agent."""

from __future__ import annotations

from importlib.metadata import version

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
        # Of A2A 0.3: some directories and linters look for these.
        "url": url,
        "protocolVersion": PROTOCOL_VERSION,
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": PROTOCOL_VERSION}],
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
