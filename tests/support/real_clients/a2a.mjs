// The official client of A2A for JavaScript.
import assert from "node:assert/strict";
import { CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, StreamResponse, SubscribeToTaskRequest, Task, TaskState } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";

const url = `${process.argv[2]}/helper/.well-known/agent-card.json`;
const client = await new ClientFactory().createFromUrl(url, "");

const send = (text, fields = {}) =>
  SendMessageRequest.fromJSON({
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...fields },
  });
const textOf = (task) => task.artifacts[0].parts.map((part) => part.content.value).join("");

// A whole answer, and one in the same conversation.
let task = await client.sendMessage(send("Hi"));
assert.deepEqual([task.status.state, textOf(task)], [TaskState.TASK_STATE_COMPLETED, "You said: Hi"]);
const next = await client.sendMessage(send("book", { contextId: task.contextId }));
assert.deepEqual([next.contextId, textOf(next)], [task.contextId, "It says: It is in the book."]);

// A stream.
let text = "";
let last;
for await (const event of client.sendMessageStream(send("Hi"))) {
  const { $case: kind, value } = event.payload;
  if (kind === "artifactUpdate") text += value.artifact.parts.map((part) => part.content.value).join("");
  if (kind === "statusUpdate") last = value.status.state;
}
assert.deepEqual([text, last], ["You said: Hi", TaskState.TASK_STATE_COMPLETED]);

// An approval.
task = await client.sendMessage(send("pay"));
assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
for await (const event of client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id: task.id }))) {
  last = event.payload.value.status.state;
}
assert.equal(last, TaskState.TASK_STATE_INPUT_REQUIRED);
const paid = await client.sendMessage(send("yes", { taskId: task.id }));
assert.deepEqual([paid.id, textOf(paid)], [task.id, "It says: paid 3"]);

// Get, list, cancel, and errors.
const kept = await client.getTask(GetTaskRequest.fromJSON({ id: task.id }));
assert.equal(textOf(kept), "It says: paid 3");
const listed = await client.listTasks(ListTasksRequest.fromJSON({ contextId: task.contextId }));
assert.deepEqual(listed.tasks.map((one) => one.id), [task.id]);
task = await client.sendMessage(send("pay"));
const cancelled = await client.cancelTask(CancelTaskRequest.fromJSON({ id: task.id }));
assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
await assert.rejects(client.cancelTask(CancelTaskRequest.fromJSON({ id: task.id })), { name: "TaskNotCancelableError" });
await assert.rejects(client.getTask(GetTaskRequest.fromJSON({ id: "nope" })), { name: "TaskNotFoundError" });
