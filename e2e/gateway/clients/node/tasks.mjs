// What every script here does: a JSON task a line on standard input, an answer a line on standard output, as in
// ../python/tasks.py.
import { createInterface } from "node:readline";

export const url = process.env.SKILLET_URL.replace(/\/$/, "");
export const token = process.env.SKILLET_TOKEN;

/** Parameters of the client's own tool. */
export const ownSchema = { type: "object", properties: { city: { type: "string" } } };

/** What the client answers a call with: yes, by the token in the text beside the call, or its own tool's result. */
export function result(task, text) {
  if (!task.confirm) return task.own?.result ?? "";
  const word = /\{[^{}]*"token"[^{}]*\}/.exec(text ?? "");
  if (!word) throw new Error(`no token in ${text}`);
  return word[0];
}

/** Asks, and where the client's own tool is called or a skill's call is to be confirmed, answers it and asks again. */
export async function conversation(ask, task, begin) {
  const { text, calls, pieces, usage, next } = await ask(task, begin);
  const then = calls.length > 0 && (task.own || task.confirm) ? (await ask(task, next)).text : null;
  const toolCalls = calls.map(({ name, input }) => ({ name, input }));
  return { text, toolCalls, streamed: pieces > 1, usage, then };
}

/** Gives every task to `converse`, in order; an error of one is its answer. */
export async function run(converse) {
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      answer = await converse(JSON.parse(line));
    } catch (error) {
      answer = { error: `${error.name}: ${error.message}`, status: error.status ?? null };
    }
    console.log(JSON.stringify(answer));
  }
}
