// Google's GenAI SDK: generateContent, whole and streamed.
import { GoogleGenAI } from "@google/genai";

import { conversation, ownSchema, result, run, token, url } from "./tasks.mjs";

const client = new GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: url } });

async function ask(task, contents) {
  const request = { model: task.model, contents, config: {} };
  if (task.own) {
    const own = { name: task.own.name, description: "The client's own.", parametersJsonSchema: ownSchema };
    request.config.tools = [{ functionDeclarations: [own] }];
  }
  const answers = [];
  if (task.stream) {
    for await (const chunk of await client.models.generateContentStream(request)) answers.push(chunk);
  } else {
    answers.push(await client.models.generateContent(request));
  }
  const parts = answers.flatMap((answer) => answer.candidates[0].content.parts);
  const text = parts.map((part) => part.text ?? "").join("");
  const called = parts.flatMap((part) => (part.functionCall ? [part.functionCall] : []));
  const calls = called.map((call) => ({ name: call.name, input: call.args }));
  const given = calls.length > 0 ? result(task, text) : "";
  const response = task.confirm && calls.length > 0 ? JSON.parse(given) : { result: given };
  const results = calls.map(({ name }) => ({ functionResponse: { name, response } }));
  const counted = answers.at(-1).usageMetadata;
  const next = [...contents, { role: "model", parts }, { role: "user", parts: results }];
  const usage = [counted.promptTokenCount, counted.candidatesTokenCount];
  return { text, calls, pieces: task.stream ? answers.length : 0, usage, next };
}

await run((task) => conversation(ask, task, [{ role: "user", parts: [{ text: task.prompt }] }]));
