// The official openai library for JavaScript against a gateway:
// openai_sdk.js http://HOST:PORT/v1, with the library on NODE_PATH.
//
// Run by clients_test.cc, which serves a small random model: what it says makes
// no sense, but two ways of asking must give the same.

const assert = require("node:assert/strict");
const test = require("node:test");
const OpenAI = require("openai").default;

const CHAT = [{ role: "system", content: "Be brief." }, { role: "user", content: "Say something." }];

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "any", maxRetries: 0, timeout: 60_000 });

function greedy(options) {
  return { model: "tiny", temperature: 0, ignore_eos: true, ...options };
}

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

test("models", async () => {
  const models = await all(client.models.list());
  assert.deepEqual(models.map((model) => model.id), ["tiny"]);
  assert.equal((await client.models.retrieve("tiny")).id, "tiny");
  await assert.rejects(client.models.retrieve("org/other"), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    return error.code === "model_not_found";
  });
});

test("a chat, streamed or not", async () => {
  const options = greedy({ messages: CHAT, max_completion_tokens: 12, n: 2, logprobs: true, top_logprobs: 2 });
  const whole = await client.chat.completions.create(options);
  assert.equal(whole.object, "chat.completion");
  assert.equal(whole.usage.completion_tokens, 24);
  const chunks = await all(
    await client.chat.completions.create({ ...options, stream: true, stream_options: { include_usage: true } }),
  );
  const usage = chunks.at(-1).usage;
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  assert.equal(usage.prompt_tokens, whole.usage.prompt_tokens);
  for (const choice of whole.choices) {
    const parts = chunks.flatMap((chunk) => chunk.choices).filter((part) => part.index === choice.index);
    assert.equal(parts.map((part) => part.delta.content ?? "").join(""), choice.message.content);
    assert.equal(parts.at(-1).finish_reason, choice.finish_reason);
    assert.deepEqual(parts.flatMap((part) => part.logprobs?.content ?? []), choice.logprobs.content);
    assert.equal(choice.logprobs.content.length, 12);
    assert.equal(choice.logprobs.content[0].top_logprobs.length, 2);
  }
});

test("embeddings", async () => {
  const answer = await client.embeddings.create({ model: "tiny", input: ["One", "Two", "One"] });
  const [one, two, again] = answer.data.map((item) => item.embedding);
  assert.deepEqual(one, again);
  assert.notDeepEqual(one, two);
  assert.ok(Math.abs(one.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-5);
  const options = { model: "tiny", input: [[79, 110, 101]], encoding_format: "float" };
  const ids = await client.embeddings.create(options);
  assert.equal(ids.data[0].embedding.length, one.length);
  assert.equal(ids.usage.prompt_tokens, 3);
});

test("the stream helper", async () => {
  const stream = client.chat.completions.stream(greedy({ messages: CHAT, max_tokens: 8 }));
  let text = "";
  stream.on("content", (delta) => (text += delta));
  const whole = await stream.finalChatCompletion();
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(whole.choices[0].finish_reason, "length");
});

test("completions of lists", async () => {
  const answer = await client.completions.create(
    greedy({ prompt: ["One", "Two"], max_tokens: 4, echo: true, logprobs: 1 }),
  );
  assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1]);
  assert.ok(answer.choices[1].text.startsWith("Two"));
  assert.equal(answer.choices[0].logprobs.token_logprobs[0], null);
  const ids = await client.completions.create(greedy({ prompt: [65, 66, 67], max_tokens: 4 }));
  assert.equal(ids.usage.prompt_tokens, 3);
});

test("a stream that is left early", async () => {
  const stream = await client.chat.completions.create(greedy({ messages: CHAT, max_tokens: 50_000, stream: true }));
  for await (const chunk of stream) {
    assert.ok(chunk.id);
    break;
  }
});

test("errors", async () => {
  await assert.rejects(
    client.chat.completions.create({ model: "tiny", messages: CHAT, temperature: -1 }),
    (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature" && !!error.requestID,
  );
  await assert.rejects(
    client.chat.completions.create({ model: "tiny", messages: CHAT, max_tokens: 10 ** 6 }),
    (error) => error.code === "context_length_exceeded",
  );
  await assert.rejects(
    client.completions.create({ model: "other", prompt: "hi" }),
    (error) => error instanceof OpenAI.NotFoundError,
  );
  await assert.rejects(
    client.embeddings.create({ model: "tiny", input: "hi", dimensions: 3 }),
    (error) => error.status === 400 && error.param === "dimensions",
  );
});
