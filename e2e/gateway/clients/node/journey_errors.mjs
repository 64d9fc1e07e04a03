// Errors of the gateway as each SDK raises them: a turn's words are the exception's class, its message and its body.
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

import { run, token, url } from "./journey.mjs";

const limits = { maxRetries: 0, timeout: 40_000 };
const openai = (apiKey) => new OpenAI({ baseURL: `${url}/v1`, apiKey, ...limits });
const anthropic = (authToken) => new Anthropic({ baseURL: url, authToken, apiKey: null, ...limits });
const google = (apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url, timeout: 40_000 } });

/** Reads a stream to its end. */
async function drain(answer) {
  for await (const _ of answer);
}

const apis = {
  chat: {
    make: openai,
    ask: (client, model, prompt, headers, stream) =>
      client.chat.completions.create({ model, messages: [{ role: "user", content: prompt }], stream }, { headers }),
  },
  responses: {
    make: openai,
    ask: (client, model, prompt, headers, stream) => client.responses.create({ model, input: prompt, stream }, { headers }),
  },
  messages: {
    make: anthropic,
    ask: (client, model, prompt, headers, stream) =>
      client.messages.create({ model, messages: [{ role: "user", content: prompt }], max_tokens: 99, stream }, { headers }),
  },
  generate: {
    make: google,
    ask: (client, model, prompt, headers, stream) => {
      const request = { model, contents: prompt, config: { httpOptions: { headers } } };
      return stream ? client.models.generateContentStream(request) : client.models.generateContent(request);
    },
  },
};

async function fail(api, model, what) {
  const client = api.make(what === "token" ? "nobody" : token);
  if (what === "path") return client.post(api.make === openai ? "/nothing" : "/v1/nothing");
  const prompt = what === "broken" ? "fault break 9 and say one two three" : "say hi";
  const answer = await api.ask(client, model, prompt, what === "header" ? { "x-skillet-skills": "some" } : {}, what === "broken");
  if (what === "broken") await drain(answer);
  return answer;
}

run((task) => ({
  async say(what) {
    try {
      await fail(apis[task.api], task.model, what);
    } catch (raised) {
      return { text: `${raised.constructor.name}: ${raised.message} ${JSON.stringify(raised.error ?? null)}`, calls: [] };
    }
    return { text: "nothing was raised", calls: [] };
  },
}));
