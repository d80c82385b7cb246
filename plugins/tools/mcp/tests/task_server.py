"""An MCP server whose tools are called as tasks; the name of a tool says how its task goes. It logs its requests.

It speaks the protocol by itself, because the SDK's server has no tasks.
"""

import json
import sys

LOG, HAS_TASKS = sys.argv[1], sys.argv[2] == "tasks"
NAMES = ("quick", "slow", "endless", "at_once", "fails", "refused", "asks", "lies")
TIMES = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": None, "pollInterval": 1}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
polls = 0


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def task(name, status, **more):
    return {"taskId": name, "status": status, **TIMES, **more}


def status_of(name):
    global polls  # noqa: PLW0603 - one client at a time
    polls += 1
    if name == "endless" or (name == "slow" and polls < 3):
        return task(name, "working", statusMessage=f"step {polls}")
    return task(name, {"asks": "input_required", "fails": "failed", "refused": "failed"}.get(name, "completed"))


def result_of(name):
    if name == "asks":
        form = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
        send({"id": "q", "method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": form}})
        return text(json.loads(sys.stdin.readline())["result"]["action"])
    if name == "lies":
        return text("x", structuredContent={"n": "x"})
    return text(f"result of {name}", isError=name == "fails")


def answer(method, params):
    match method:
        case "initialize":
            tasks = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}} if HAS_TASKS else {}
            info = {"name": "tasks", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, **tasks}, "serverInfo": info}
        case "tools/list":
            must = {"inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
            return {
                "tools": [{"name": name, **must, "outputSchema": SCHEMA if name == "lies" else {}} for name in NAMES]
            }
        case "tools/call" if params["name"] == "at_once":
            return text("at once")
        case "tools/call" if "task" in params:
            return {"task": task(params["name"], "working")}
        case "tasks/get":
            return status_of(params["taskId"])
        case "tasks/result" if params["taskId"] != "refused":
            return result_of(params["taskId"])
        case "tasks/cancel":
            return task(params["taskId"], "cancelled")
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    with open(LOG, "a") as log:  # noqa: PTH123 - with few imports for a quick start
        log.write(message["method"] + "\n")
    result = answer(message["method"], message.get("params") or {})
    error = {"error": {"code": -32601, "message": "no such thing"}}
    send({"id": message["id"], **(error if result is None else {"result": result})})
