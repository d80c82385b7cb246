// The official client of AG-UI. It checks every event and its place, and a warning of it is a failure here.
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";

const url = `${process.argv[2]}/helper`;
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
const user = (content) => ({ id: crypto.randomUUID(), role: "user", content });

class Agent extends HttpAgent {
  connect(input) {
    return new HttpAgent({ url: `${this.url}/connect`, threadId: this.threadId }).run(input);
  }
}

async function ask(agent, content, parameters = {}) {
  if (content) agent.addMessage(user(content));
  let end;
  const note = { onRunFinishedEvent: (event) => { end = event; } };
  await agent.runAgent(parameters, note);
  return end;
}

// Text and reasoning.
let agent = new Agent({ url });
assert.equal((await ask(agent, "Hi")).outcome, "success");
assert.deepEqual(agent.messages.slice(1).map((one) => [one.role, one.content]), [
  ["reasoning", "Let me think."],
  ["assistant", "You said: Hi"],
]);
await ask(agent, "book");
assert.equal(agent.messages.at(-1).content, "It says: It is in the book.");

// A tool of the front end.
const parameters = { type: "object", properties: { city: { type: "string" } } };
const tools = [{ name: "weather", description: "Tell the weather.", parameters }];
let end = await ask(agent, "weather", { tools });
const [call] = agent.messages.at(-1).toolCalls;
assert.deepEqual([end.pendingToolCallIds, call.function.arguments], [[call.id], '{"city": "Bonn"}']);
agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content: "rain" });
await ask(agent, "", { tools });
assert.equal(agent.messages.at(-1).content, "It says: rain");

// An approval, and the same conversation elsewhere.
end = await ask(agent, "pay");
assert.deepEqual([end.outcome, agent.pendingInterrupts.length], ["interrupt", 1]);
await assert.rejects(ask(agent, "Hi"));
agent.messages.pop();
const late = new Agent({ url, threadId: agent.threadId });
await late.connectAgent();
const own = (messages) => messages.filter((one) => one.role !== "reasoning");
assert.deepEqual(own(late.messages), own(agent.messages));
assert.equal(late.pendingInterrupts[0].id, agent.pendingInterrupts[0].id);
const resume = [{ interruptId: late.pendingInterrupts[0].id, status: "resolved", payload: { approved: true } }];
await ask(late, "", { resume });
assert.equal(late.messages.at(-1).content, "It says: paid 3");

// A nested agent, and the state.
agent = new Agent({ url, initialState: { size: 3 } });
let names = [];
agent.addMessage(user("delegate"));
await agent.runAgent({}, { onSubagentStartedEvent: ({ event }) => { names.push(event.name); } });
assert.deepEqual(names, ["clerk"]);
await ask(agent, "paint");
assert.deepEqual(agent.state, { size: 3, color: "red" });

// Errors.
console.error = () => {};
await assert.rejects(new Agent({ url: `${url}nobody` }).runAgent(), /agent_not_found/);
await assert.rejects(ask(new Agent({ url }), "Hi", { forwardedProps: { temperature: 1 } }), /forwardedProps/);
assert.deepEqual(warnings, []);
