// OpenAI's SDK over several turns: chat completions, responses with items, and with state at the provider.
import OpenAI from "openai";

import { description, ownNames, result, run, schema, token, url } from "./journey.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0, timeout: 40_000 });

function demand(task, isFirst) {
  return task.demanded && isFirst ? { tool_choice: "required" } : {};
}

class Chat {
  constructor(task) {
    this.task = task;
    this.messages = [];
    const functions = ownNames(task).map((name) => ({ name, description, parameters: schema }));
    const tools = functions.map((own) => ({ type: "function", function: own }));
    this.fields = tools.length > 0 ? { tools } : {};
  }

  say(prompt) {
    this.messages.push({ role: "user", content: prompt });
    return this.ask(demand(this.task, this.messages.length === 1));
  }

  answer(calls) {
    this.messages.push(...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: result })));
    return this.ask({});
  }

  async ask(fields) {
    const request = { model: this.task.model, messages: this.messages, ...this.fields, ...fields };
    const answer = this.task.stream
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request);
    const message = answer.choices[0].message;
    const { parsed: _, tool_calls: called, ...rest } = message;
    const { role, content } = rest;
    const plain = (called ?? []).map(({ id, type, function: { name, arguments: text } }) => ({
      id,
      type,
      function: { name, arguments: text },
    }));
    const turn = { ...(this.task.bare ? { role } : rest), content: content ?? (plain.length > 0 ? null : "") };
    this.messages.push({ ...turn, ...(plain.length > 0 ? { tool_calls: plain } : {}) });
    return { text: content, calls: plain.map((call) => ({ id: call.id, name: call.function.name })) };
  }
}

class Responses {
  constructor(task, conversation) {
    this.task = task;
    this.items = [];
    this.isFirst = true;
    const tools = ownNames(task).map((name) => ({ type: "function", name, description, parameters: schema, strict: false }));
    this.fields = {
      ...(tools.length > 0 ? { tools } : {}),
      ...(task.reasoning ? { reasoning: { effort: "low", summary: "auto" } } : {}),
      ...(task.store === false ? { store: false, include: ["reasoning.encrypted_content"] } : {}),
      ...(conversation ? { conversation } : {}),
    };
  }

  say(prompt) {
    this.items.push({ role: "user", content: prompt });
    return this.ask(demand(this.task, this.isFirst));
  }

  answer(calls) {
    this.items.push(...calls.map(({ id }) => ({ type: "function_call_output", call_id: id, output: result })));
    return this.ask({});
  }

  async ask(fields) {
    this.isFirst = false;
    const request = { model: this.task.model, input: this.items, ...this.fields, ...fields };
    const answer = this.task.stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    if (this.task.state) {
      this.items = [];
      if (this.task.state === "response") this.fields.previous_response_id = answer.id;
    } else {
      this.items.push(...answer.output.map(({ parsed_arguments: _, ...item }) => item));
    }
    const called = answer.output.filter((item) => item.type === "function_call");
    return { text: answer.output_text, calls: called.map((item) => ({ id: item.call_id, name: item.name })) };
  }
}

await run(async (task) => {
  if (task.api === "chat") return new Chat(task);
  const conversation = task.state === "conversation" ? (await client.conversations.create()).id : null;
  return new Responses(task, conversation);
});
