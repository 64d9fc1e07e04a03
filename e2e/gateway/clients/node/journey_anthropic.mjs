// Anthropic's SDK over several turns: messages, with thinking, and its own loop over message threads.
import Anthropic from "@anthropic-ai/sdk";

import { description, own, ownNames, result, run, schema, token, url } from "./journey.mjs";

const client = new Anthropic({ baseURL: url, apiKey: token, maxRetries: 0, timeout: 40_000 });
const THINKING = { enabled: { type: "enabled", budget_tokens: 1024 }, adaptive: { type: "adaptive" } };

class Messages {
  constructor(task) {
    this.task = task;
    this.messages = [];
    const tools = ownNames(task).map((name) => ({ name, description, input_schema: schema }));
    this.fields = {
      ...(tools.length > 0 ? { tools } : {}),
      ...(task.thinking ? { thinking: THINKING[task.thinking] } : {}),
    };
  }

  say(prompt) {
    this.messages.push({ role: "user", content: prompt });
    return this.ask(this.task.demanded && this.messages.length === 1 ? { tool_choice: { type: "any" } } : {});
  }

  answer(calls) {
    const content = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: result }));
    this.messages.push({ role: "user", content });
    return this.ask({});
  }

  async ask(fields) {
    const request = { model: this.task.model, max_tokens: 4096, messages: this.messages, ...this.fields, ...fields };
    const answer = this.task.stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
    this.messages.push({ role: "assistant", content: answer.content });
    const texts = answer.content.filter((block) => block.type === "text").map((block) => block.text);
    const called = answer.content.filter((block) => block.type === "tool_use");
    return { text: texts.join("\n"), calls: called.map(({ id, name }) => ({ id, name })) };
  }
}

/** The SDK's loop runs the own tool by itself, so that no call reaches the journey; it counts them. */
class Runner {
  constructor(task) {
    this.task = task;
    this.messages = [];
    const run = () => {
      this.called += 1;
      return result;
    };
    const tool = { type: "custom", name: own, description, input_schema: schema, run, parse: (input) => input };
    this.tools = ownNames(task).length > 0 ? [tool] : [];
  }

  async say(prompt) {
    this.messages.push({ role: "user", content: prompt });
    this.called = 0;
    const { task, messages, tools } = this;
    const runner = client.beta.messages.toolRunner({ model: task.model, max_tokens: 4096, messages, tools, stream: task.stream });
    const texts = [];
    let message;
    for await (const answer of runner) {
      message = task.stream ? await answer.finalMessage() : answer;
      texts.push(...message.content.filter((block) => block.type === "text").map((block) => block.text));
    }
    this.messages = [...runner.params.messages];
    if (this.messages.at(-1).role === "user") this.messages.push({ role: "assistant", content: message.content });
    return { text: texts.join("\n"), calls: Array.from({ length: this.called }, () => ({ id: "", name: own })) };
  }

  answer() {
    return { text: "", calls: [] };
  }
}

await run((task) => (task.runner ? new Runner(task) : new Messages(task)));
