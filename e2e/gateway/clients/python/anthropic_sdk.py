"""Anthropic's SDK: messages, whole and streamed."""

import anthropic

import tasks

client = anthropic.Anthropic(base_url=tasks.URL, api_key=tasks.TOKEN, max_retries=0)


def ask(task, messages):
    request = {"model": task["model"], "max_tokens": 1024, "messages": messages}
    if own := task.get("own"):
        tool = {"name": own["name"], "description": "The client's own.", "input_schema": tasks.own_schema()}
        request["tools"] = [tool]
    if task["stream"]:
        with client.messages.stream(**request) as stream:
            pieces = sum(1 for _ in stream)
            answer = stream.get_final_message()
    else:
        pieces, answer = 0, client.messages.create(**request)
    text = "\n".join(block.text for block in answer.content if block.type == "text")
    calls = [(block.id, block.name, block.input) for block in answer.content if block.type == "tool_use"]
    given = tasks.result(task, text) if calls else ""
    results = [{"type": "tool_result", "tool_use_id": id, "content": given} for id, _, _ in calls]
    turn = [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    usage = [answer.usage.input_tokens, answer.usage.output_tokens]
    return text, calls, pieces, usage, messages + turn


def converse(task):
    text, calls, pieces, usage, messages = ask(task, [{"role": "user", "content": task["prompt"]}])
    then = ask(task, messages)[0] if calls and tasks.answered(task) else None
    shown = [{"name": name, "input": value} for _, name, value in calls]
    return {"text": text, "toolCalls": shown, "streamed": pieces > 1, "usage": usage, "then": then}


tasks.run(converse)
