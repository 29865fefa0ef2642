// The official openai library for JavaScript with tools, reasoning and retries:
// openai_tools_sdk.js http://HOST:PORT/v1, with the library on NODE_PATH.
//
// Run by tool_clients_test.cc, whose worker asks for the weather of Zürich and,
// once it has it, tells it.

const assert = require("node:assert/strict");
const test = require("node:test");
const OpenAI = require("openai").default;

const QUESTION = [{ role: "user", content: "Weather?" }];
const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Today's weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

function client(maxRetries = 0) {
  return new OpenAI({ baseURL: process.argv[2], apiKey: "any", maxRetries, timeout: 60_000 });
}

function create(options) {
  return client().chat.completions.create({ model: "fake", messages: QUESTION, tools: [TOOL], ...options });
}

test("a call and what comes of it", async () => {
  const asked = await create({ tool_choice: "auto" });
  const { message, finish_reason } = asked.choices[0];
  assert.equal(finish_reason, "tool_calls");
  assert.equal(message.content, null);
  assert.equal(message.reasoning_content, "I must look.");
  assert.deepEqual(message.tool_calls.map((call) => call.function.name), ["get_weather", "get_weather"]);
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: "Zürich" });

  const answers = message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "21" }));
  const told = await create({ messages: [...QUESTION, message, ...answers] });
  assert.equal(told.choices[0].finish_reason, "stop");
  assert.equal(told.choices[0].message.content, "It is 21 °C.");
});

test("the stream helper puts calls together", async () => {
  const stream = client().chat.completions.stream({ model: "fake", messages: QUESTION, tools: [TOOL] });
  const whole = await stream.finalChatCompletion();
  assert.equal(whole.choices[0].finish_reason, "tool_calls");
  assert.deepEqual(JSON.parse(whole.choices[0].message.tool_calls[1].function.arguments), { city: "東京" });
});

test("the runner calls the functions", async () => {
  const cities = [];
  const runner = client().chat.completions.runTools({
    model: "fake",
    messages: QUESTION,
    tools: [
      {
        type: "function",
        function: { ...TOOL.function, parse: JSON.parse, function: ({ city }) => `${cities.push(city)}` },
      },
    ],
  });
  assert.equal(await runner.finalContent(), "It is 21 °C.");
  assert.deepEqual(cities, ["Zürich", "東京"]);
});

test("a full queue is tried again when the worker says", async () => {
  const busy = [{ role: "user", content: "busy 2 js" }];
  const began = Date.now();
  const told = await client(2).chat.completions.create({ model: "fake", messages: busy });
  assert.equal(told.choices[0].message.content, "At last.");
  assert.ok(Date.now() - began >= 2 * 200, "it did not wait");
  const never = [{ role: "user", content: "busy 9 js" }];
  await assert.rejects(client(0).chat.completions.create({ model: "fake", messages: never }), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    return error.error.reason === "QUEUE_FULL_REQUESTS";
  });
});
