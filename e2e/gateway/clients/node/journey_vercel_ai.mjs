// Vercel's AI SDK over several turns: its loop runs the own tool by itself, and its messages go back as it wrote them.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";

import { description, MOST_REQUESTS, own, ownNames, result, run, schema, token, url } from "./journey.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: token });
const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey: token });
const google = createGoogle({ baseURL: `${url}/v1beta`, apiKey: token });
const MODELS = { chat: openai.chat, responses: openai.responses, messages: anthropic, generate: google };
const THINKING = { enabled: { type: "enabled", budgetTokens: 1024 }, adaptive: { type: "adaptive" } };

class Conversation {
  constructor(task) {
    this.task = task;
    this.messages = [];
    this.isFirst = true;
    const execute = () => {
      this.called += 1;
      return result;
    };
    this.tools = Object.fromEntries(ownNames(task).map((name) => [name, tool({ description, inputSchema: jsonSchema(schema), execute })]));
    if (task.search) this.tools = { google_search: google.tools.googleSearch({}) };
    this.options = {
      openai: {
        ...(task.store === false ? { store: false } : {}),
        ...(task.reasoning ? { reasoningEffort: "low", reasoningSummary: "auto" } : {}),
      },
      anthropic: task.thinking ? { thinking: THINKING[task.thinking] } : {},
      google: {
        ...(task.thinking ? { thinkingConfig: { includeThoughts: true } } : {}),
        ...(task.cached ? { cachedContent: "cachedContents/1" } : {}),
      },
    };
  }

  async say(prompt) {
    const { task, options, tools } = this;
    const isDemanded = task.demanded && this.isFirst;
    this.isFirst = false;
    this.messages.push({ role: "user", content: prompt });
    this.called = 0;
    const request = {
      model: MODELS[task.api](task.model), messages: this.messages, tools, providerOptions: options, maxRetries: 0,
      stopWhen: stepCountIs(MOST_REQUESTS), timeout: 40_000,
      prepareStep: ({ stepNumber }) => (isDemanded && stepNumber === 0 ? { toolChoice: "required" } : {}),
      ...(task.json ? { output: Output.json() } : {}),
    };
    const [steps, answered] = await (task.stream ? streamed(request) : whole(request));
    this.messages.push(...answered);
    if (task.state === "response") {
      this.messages = [];
      options.openai.previousResponseId = steps.at(-1).providerMetadata.openai.responseId;
    }
    return { text: steps.map((step) => step.text).join("\n"), calls: Array.from({ length: this.called }, () => ({ id: "", name: own })) };
  }

  answer() {
    return { text: "", calls: [] };
  }
}

async function whole(request) {
  const { steps, responseMessages } = await generateText(request);
  return [steps, responseMessages];
}

async function streamed(request) {
  let failure;
  const onError = ({ error }) => {
    failure ??= error;
  };
  const answer = streamText({ ...request, onError });
  await answer.consumeStream();
  if (failure) throw failure;
  return Promise.all([answer.steps, answer.responseMessages]);
}

await run((task) => new Conversation(task));
