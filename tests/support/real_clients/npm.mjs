// The official client for JavaScript, and the provider of the AI SDK for Open Responses.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

const base = process.argv[2];
const parameters = { type: "object", properties: { city: { type: "string" } } };
const client = new OpenAI({ baseURL: base, apiKey: "none", maxRetries: 0 });
const model = "helper";

const response = await client.responses.create({ model, input: "Hi" });
assert.equal(response.output_text, "You said: Hi");
let text = "";
for await (const event of await client.responses.create({ model, input: "Hi", stream: true })) {
  if (event.type === "response.output_text.delta") text += event.delta;
}
assert.equal(text, "You said: Hi");
const folded = await client.responses.stream({ model, input: "Hi" }).finalResponse();
assert.equal(folded.output_text, "You said: Hi");
const messages = [{ role: "user", content: "Hi" }];
const chat = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
assert.equal(chat.choices[0].message.content, "You said: Hi");
const weather = { name: "weather", description: "Tell the weather.", parse: JSON.parse, parameters };
const runner = client.chat.completions.runTools({
  model,
  messages: [{ role: "user", content: "weather" }],
  tools: [{ type: "function", function: { ...weather, function: async ({ city }) => `rain in ${city}` } }],
});
assert.equal(await runner.finalContent(), "It says: rain in Bonn");

const open = createOpenResponses({ name: "jackfield", url: `${base}/responses` })(model);
const whole = await generateText({ model: open, prompt: "Hi", system: "Be brief.", temperature: 0.5 });
assert.deepEqual([whole.text, whole.reasoningText, whole.finishReason], ["You said: Hi", "Let me think.", "stop"]);
const tools = {
  weather: tool({
    description: "Tell the weather.",
    inputSchema: jsonSchema(parameters),
    execute: async ({ city }) => `rain in ${city}`,
  }),
};
const looped = await generateText({ model: open, prompt: "weather", tools, stopWhen: stepCountIs(3) });
assert.equal(looped.text, "It says: rain in Bonn");
text = "";
for await (const piece of streamText({ model: open, prompt: "weather", tools, stopWhen: stepCountIs(3) }).textStream) {
  text += piece;
}
assert.equal(text, "It says: rain in Bonn");
assert.equal((await generateText({ model: open, prompt: "book" })).text, "It says: It is in the book.");
