// OpenAI's SDK: chat completions and responses, whole and streamed.
import OpenAI from "openai";

import { conversation, ownSchema, result, run, token, url } from "./tasks.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });

async function chat(task, messages) {
  const request = { model: task.model, messages };
  if (task.own) {
    const own = { name: task.own.name, description: "The client's own.", parameters: ownSchema };
    request.tools = [{ type: "function", function: own }];
  }
  let answer;
  let pieces = 0;
  if (task.stream) {
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    for await (const _ of stream) pieces += 1;
    answer = await stream.finalChatCompletion();
  } else {
    answer = await client.chat.completions.create(request);
  }
  const { role, content, tool_calls: called } = answer.choices[0].message;
  const calls = (called ?? []).map((call) => ({
    id: call.id,
    name: call.function.name,
    input: JSON.parse(call.function.arguments),
  }));
  const plain = (called ?? []).map(({ id, type, function: { name, arguments: text } }) => ({
    id,
    type,
    function: { name, arguments: text },
  }));
  const turn = { role, content, ...(plain.length > 0 ? { tool_calls: plain } : {}) };
  const given = calls.length > 0 ? result(task, content) : "";
  const results = calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: given }));
  const usage = [answer.usage.prompt_tokens, answer.usage.completion_tokens];
  return { text: content, calls, pieces, usage, next: [...messages, turn, ...results] };
}

async function responses(task, items) {
  const request = { model: task.model, input: items };
  if (task.own) {
    const own = { name: task.own.name, description: "The client's own.", parameters: ownSchema };
    request.tools = [{ type: "function", strict: false, ...own }];
  }
  let answer;
  let pieces = 0;
  if (task.stream) {
    const stream = client.responses.stream(request);
    for await (const _ of stream) pieces += 1;
    answer = await stream.finalResponse();
  } else {
    answer = await client.responses.create(request);
  }
  const called = answer.output.filter((item) => item.type === "function_call");
  const calls = called.map((item) => ({ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) }));
  const turn = answer.output.map(({ parsed_arguments: _, ...item }) => item);
  const output = calls.length > 0 ? result(task, answer.output_text) : "";
  const results = calls.map((call) => ({ type: "function_call_output", call_id: call.id, output }));
  const usage = [answer.usage.input_tokens, answer.usage.output_tokens];
  return { text: answer.output_text, calls, pieces, usage, next: [...items, ...turn, ...results] };
}

await run((task) =>
  conversation({ chat, responses }[task.api], task, [{ role: "user", content: task.prompt }]),
);
