"""Google's GenAI SDK: generate_content, whole and streamed."""

import json

from google import genai
from google.genai import types

import tasks

client = genai.Client(api_key=tasks.TOKEN, http_options=types.HttpOptions(base_url=tasks.URL))


def ask(task, contents):
    config = types.GenerateContentConfig(automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))
    if own := task.get("own"):
        declared = types.FunctionDeclaration(
            name=own["name"], description="The client's own.", parameters_json_schema=tasks.own_schema()
        )
        config.tools = [types.Tool(function_declarations=[declared])]
    request = {"model": task["model"], "contents": contents, "config": config}
    if task["stream"]:
        answers = list(client.models.generate_content_stream(**request))
    else:
        answers = [client.models.generate_content(**request)]
    parts = [part for answer in answers for part in answer.candidates[0].content.parts]
    text = "".join(part.text for part in parts if part.text)
    calls = [(None, part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    given = tasks.result(task, text) if calls else ""
    given = json.loads(given) if task.get("confirm") and calls else {"result": given}
    results = [types.Part.from_function_response(name=name, response=given) for _, name, _ in calls]
    turn = [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]
    counted = answers[-1].usage_metadata
    usage = [counted.prompt_token_count, counted.candidates_token_count]
    return text, calls, len(answers) if task["stream"] else 0, usage, contents + turn


def converse(task):
    begin = [types.Content(role="user", parts=[types.Part.from_text(text=task["prompt"])])]
    text, calls, pieces, usage, contents = ask(task, begin)
    then = ask(task, contents)[0] if calls and tasks.answered(task) else None
    shown = [{"name": name, "input": value} for _, name, value in calls]
    return {"text": text, "toolCalls": shown, "streamed": pieces > 1, "usage": usage, "then": then}


tasks.run(converse)
