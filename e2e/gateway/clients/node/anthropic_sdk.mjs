// Anthropic's SDK: messages, whole and streamed.
import Anthropic from "@anthropic-ai/sdk";

import { conversation, ownSchema, result, run, token, url } from "./tasks.mjs";

const client = new Anthropic({ baseURL: url, apiKey: token, maxRetries: 0 });

async function ask(task, messages) {
  const request = { model: task.model, max_tokens: 1024, messages };
  if (task.own) {
    request.tools = [{ name: task.own.name, description: "The client's own.", input_schema: ownSchema }];
  }
  let answer;
  let pieces = 0;
  if (task.stream) {
    const stream = client.messages.stream(request);
    for await (const _ of stream) pieces += 1;
    answer = await stream.finalMessage();
  } else {
    answer = await client.messages.create(request);
  }
  const texts = answer.content.filter((block) => block.type === "text").map((block) => block.text);
  const calls = answer.content.filter((block) => block.type === "tool_use");
  const content = calls.length > 0 ? result(task, texts.join("\n")) : "";
  const results = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content }));
  const turn = [
    { role: "assistant", content: answer.content },
    { role: "user", content: results },
  ];
  const usage = [answer.usage.input_tokens, answer.usage.output_tokens];
  return { text: texts.join("\n"), calls, pieces, usage, next: [...messages, ...turn] };
}

await run((task) => conversation(ask, task, [{ role: "user", content: task.prompt }]));
