// Conversations of several turns: a JSON task a line on standard input, an outcome a line on standard output, as in
// ../python/journey.py.
import { createInterface } from "node:readline";

export const url = process.env.SKILLET_URL.replace(/\/$/, "");
export const token = process.env.SKILLET_TOKEN;
export const own = "look-up";
export const result = "sunny";
export const description = "The client's own.";
export const schema = { type: "object", properties: { city: { type: "string" } } };
// More than any turn needs: a conversation that does not end is wrong.
export const MOST_REQUESTS = 12;
// Conversations at a time, as in ../python/journey.py.
const AT_A_TIME = 6;

/** Names of the client's own tools. */
export function ownNames(task) {
  if (!task.own) return [];
  const more = Array.from({ length: (task.tools ?? 1) - 1 }, (_, number) => `tool-${number + 1}`);
  return [own, ...more];
}

/** Says every prompt, and answers each call of the own tool; what comes is kept in `turns`. */
async function play(task, conversation, turns) {
  for (const [at, prompt] of task.turns.entries()) {
    const turn = { text: "", calls: [] };
    turns.push(turn);
    let { text, calls } = await conversation.say(prompt);
    turn.text = text ?? "";
    for (let request = 0; request < MOST_REQUESTS && calls.length > 0; request += 1) {
      turn.calls.push(...calls.map((call) => call.name));
      const foreign = calls.filter((call) => call.name !== own).map((call) => call.name);
      if (foreign.length > 0) throw new Error(`calls of ${foreign} reached the client`);
      ({ text, calls } = await conversation.answer(calls));
      turn.text += `\n${text ?? ""}`;
    }
    const absent = task.expect[at].filter((part) => !turn.text.includes(part));
    if (absent.length > 0) throw new Error(`${prompt} brought ${turn.text} without ${absent}`);
    if (turn.calls.length !== task.calls[at]) throw new Error(`${prompt} brought the calls ${turn.calls}`);
  }
}

/** The outcome of a task; an error of it is no error of the others. */
async function outcome(begin, task) {
  const turns = [];
  let error = null;
  try {
    await play(task, await begin(task), turns);
  } catch (raised) {
    error = `${raised.name}: ${raised.message}`.slice(0, 600);
  }
  return { name: task.name, ok: error === null, error, turns };
}

/** Plays every task with the conversation that `begin` makes of it. */
export async function run(begin) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const worker = async () => {
    for (let line = await lines.next(); !line.done; line = await lines.next()) {
      console.log(JSON.stringify(await outcome(begin, JSON.parse(line.value))));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
}
