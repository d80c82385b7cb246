"""An MCP server with one tool, `book`, which asks for a form and returns the answer."""

import json
import sys

FORM = {
    "type": "object",
    "properties": {
        "port": {"type": "string", "title": "Port", "description": "Where to?"},
        "berths": {"type": "integer", "title": "Berths", "minimum": 1},
        "class": {"type": "string", "title": "Class", "enum": ["a", "b"], "enumNames": ["<b>First</b>", "Second"]},
        "extras": {"type": "array", "title": "Extras", "items": {"type": "string", "enum": ["crane", "water"]}},
        "insured": {"type": "boolean", "title": "Insured", "default": True},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["port", "berths"],
}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result_of(method, params):
    if method == "initialize":
        info = {"name": "harbour", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": "book", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    if method == "tools/call":
        send({"id": "q", "method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": FORM}})
        while "result" not in (reply := json.loads(sys.stdin.readline())):
            pass
        return {"content": [{"type": "text", "text": json.dumps(reply["result"], sort_keys=True)}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        send({"id": message["id"], "result": result_of(message["method"], message.get("params", {}))})
