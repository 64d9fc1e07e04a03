"""Google's GenAI SDK over several turns: generate_content, with thoughts, and with what excludes functions."""

from google import genai
from google.genai import types

import journey

client = genai.Client(api_key=journey.TOKEN, http_options=types.HttpOptions(base_url=journey.URL, timeout=40_000))


class Generate:
    def __init__(self, task):
        self.task, self.contents = task, []
        declared = [
            types.FunctionDeclaration(name=name, description=journey.DESCRIPTION, parameters_json_schema=journey.SCHEMA)
            for name in journey.own_names(task)
        ]
        self.config = types.GenerateContentConfig(automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))
        if declared:
            self.config.tools = [types.Tool(function_declarations=declared)]
        if task.get("search"):
            self.config.tools = [types.Tool(google_search=types.GoogleSearch())]
        if task.get("json"):
            self.config.response_mime_type = "application/json"
        if task.get("cached"):
            self.config.cached_content = "cachedContents/1"
        if task.get("thinking"):
            self.config.thinking_config = types.ThinkingConfig(include_thoughts=True)

    def say(self, prompt):
        self.contents.append(types.Content(role="user", parts=[types.Part.from_text(text=prompt)]))
        demanded = self.task.get("demanded") and len(self.contents) == 1
        calling = types.FunctionCallingConfig(mode="ANY") if demanded else None
        self.config.tool_config = types.ToolConfig(function_calling_config=calling) if demanded else None
        return self.ask()

    def answer(self, results):
        self.config.tool_config = None
        answered = [types.FunctionResponse(id=id, name=name, response={"result": result}) for id, name, result in results]
        self.contents.append(types.Content(role="user", parts=[types.Part(function_response=it) for it in answered]))
        return self.ask()

    def ask(self):
        request = {"model": self.task["model"], "contents": self.contents, "config": self.config}
        if self.task["stream"]:
            answers = list(client.models.generate_content_stream(**request))
        else:
            answers = [client.models.generate_content(**request)]
        parts = [part for answer in answers for part in (answer.candidates[0].content.parts or [])]
        # A part without any data is what a stream ends with.
        kept = [part for part in parts if part.text or part.function_call or part.thought_signature]
        self.contents.append(types.Content(role="model", parts=kept or parts))
        text = "".join(part.text for part in parts if part.text and not part.thought)
        return text, [(part.function_call.id, part.function_call.name) for part in parts if part.function_call]


journey.run(Generate)
