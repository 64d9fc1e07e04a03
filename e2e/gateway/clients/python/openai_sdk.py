"""OpenAI's SDK: chat completions and responses, whole and streamed."""

import json

import openai

import tasks

client = openai.OpenAI(base_url=f"{tasks.URL}/v1", api_key=tasks.TOKEN, max_retries=0)


def chat(task, messages):
    request = {"model": task["model"], "messages": messages}
    if own := task.get("own"):
        function = {"name": own["name"], "description": "The client's own.", "parameters": tasks.own_schema()}
        request["tools"] = [{"type": "function", "function": function}]
    if task["stream"]:
        with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
            pieces = sum(1 for event in stream if event.type == "chunk")
            answer = stream.get_final_completion()
    else:
        pieces, answer = 0, client.chat.completions.create(**request)
    message = answer.choices[0].message
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    turn = [message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})]
    for call in turn[0].get("tool_calls", []):
        call["function"].pop("parsed_arguments", None)
    given = tasks.result(task, message.content or "") if calls else ""
    results = [{"role": "tool", "tool_call_id": id, "content": given} for id, _, _ in calls]
    usage = [answer.usage.prompt_tokens, answer.usage.completion_tokens]
    return message.content, calls, pieces, usage, messages + turn + results


def responses(task, items):
    request = {"model": task["model"], "input": items}
    if own := task.get("own"):
        tool = {"type": "function", "name": own["name"], "description": "The client's own.", "strict": False}
        request["tools"] = [{**tool, "parameters": tasks.own_schema()}]
    if task["stream"]:
        with client.responses.stream(**request) as stream:
            pieces = sum(1 for _ in stream)
            answer = stream.get_final_response()
    else:
        pieces, answer = 0, client.responses.create(**request)
    found = [item for item in answer.output if item.type == "function_call"]
    calls = [(item.call_id, item.name, json.loads(item.arguments)) for item in found]
    turn = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
    for content in (part for item in turn for part in item.get("content", [])):
        content.pop("parsed", None)
    given = tasks.result(task, answer.output_text) if calls else ""
    results = [{"type": "function_call_output", "call_id": id, "output": given} for id, _, _ in calls]
    usage = [answer.usage.input_tokens, answer.usage.output_tokens]
    return answer.output_text, calls, pieces, usage, items + turn + results


def converse(task):
    ask = {"chat": chat, "responses": responses}[task["api"]]
    begin = [{"role": "user", "content": task["prompt"]}]
    text, calls, pieces, usage, messages = ask(task, begin)
    then = ask(task, messages)[0] if calls and tasks.answered(task) else None
    shown = [{"name": name, "input": value} for _, name, value in calls]
    return {"text": text, "toolCalls": shown, "streamed": pieces > 1, "usage": usage, "then": then}


tasks.run(converse)
