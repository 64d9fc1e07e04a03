// Google's GenAI SDK over several turns: generateContent, with thoughts, and with what excludes functions.
import { GoogleGenAI } from "@google/genai";

import { description, ownNames, result, run, schema, token, url } from "./journey.mjs";

const client = new GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: url, timeout: 40_000 } });

class Generate {
  constructor(task) {
    this.task = task;
    this.contents = [];
    const declared = ownNames(task).map((name) => ({ name, description, parametersJsonSchema: schema }));
    this.config = {
      ...(declared.length > 0 ? { tools: [{ functionDeclarations: declared }] } : {}),
      ...(task.search ? { tools: [{ googleSearch: {} }] } : {}),
      ...(task.json ? { responseMimeType: "application/json" } : {}),
      ...(task.cached ? { cachedContent: "cachedContents/1" } : {}),
      ...(task.thinking ? { thinkingConfig: { includeThoughts: true } } : {}),
    };
  }

  say(prompt) {
    this.contents.push({ role: "user", parts: [{ text: prompt }] });
    const isDemanded = this.task.demanded && this.contents.length === 1;
    return this.ask(isDemanded ? { toolConfig: { functionCallingConfig: { mode: "ANY" } } } : {});
  }

  answer(calls) {
    const parts = calls.map(({ id, name }) => ({ functionResponse: { ...(id ? { id } : {}), name, response: { result } } }));
    this.contents.push({ role: "user", parts });
    return this.ask({});
  }

  async ask(fields) {
    const request = { model: this.task.model, contents: this.contents, config: { ...this.config, ...fields } };
    const answers = [];
    if (this.task.stream) {
      for await (const chunk of await client.models.generateContentStream(request)) answers.push(chunk);
    } else {
      answers.push(await client.models.generateContent(request));
    }
    const parts = answers.flatMap((answer) => answer.candidates[0].content.parts ?? []);
    // A part without any data is what a stream ends with.
    const kept = parts.filter((part) => part.text || part.functionCall || part.thoughtSignature);
    this.contents.push({ role: "model", parts: kept.length > 0 ? kept : parts });
    const text = parts.map((part) => (part.thought ? "" : (part.text ?? ""))).join("");
    const calls = parts.flatMap((part) => (part.functionCall ? [part.functionCall] : []));
    return { text, calls: calls.map(({ id, name }) => ({ id, name })) };
  }
}

await run((task) => new Generate(task));
