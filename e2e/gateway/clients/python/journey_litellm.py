"""LiteLLM over several turns: its one form of messages, for chat completions, messages and generateContent; and responses."""

import os

# Its table of models comes with it; it would ask for a newer one.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

# Several threads that load it at once find it half loaded.
import httpx2  # noqa: F401
import journey
import litellm

litellm.suppress_debug_info = True
PROVIDERS = {
    "chat": {"prefix": "openai", "api_base": f"{journey.URL}/v1"},
    "responses": {"prefix": "openai", "api_base": f"{journey.URL}/v1"},
    "messages": {"prefix": "anthropic", "api_base": journey.URL},
    "generate": {"prefix": "gemini", "api_base": f"{journey.URL}/v1beta"},
}
THINKING = {"enabled": {"type": "enabled", "budget_tokens": 1024}, "adaptive": {"type": "adaptive"}, True: {"type": "enabled", "budget_tokens": 1024}}


def fields(task):
    provider = PROVIDERS[task["api"]]
    model = f"{provider['prefix']}/{task['model']}"
    return {"model": model, "api_base": provider["api_base"], "api_key": journey.TOKEN, "max_retries": 0, "timeout": 40}


class Completion:
    def __init__(self, task):
        self.task, self.messages = task, []
        functions = [{"name": name, "description": journey.DESCRIPTION, "parameters": journey.SCHEMA} for name in journey.own_names(task)]
        self.fields = {**fields(task), "max_tokens": 4096}
        if functions:
            self.fields["tools"] = [{"type": "function", "function": function} for function in functions]
        if task.get("search"):
            self.fields["tools"] = [{"googleSearch": {}}]
        if task.get("thinking"):
            self.fields |= {"thinking": THINKING[task["thinking"]], "allowed_openai_params": ["thinking"]}
        if task.get("json"):
            self.fields["response_format"] = {"type": "json_object"}
        if task.get("cached"):
            self.fields["cached_content"] = "cachedContents/1"

    def say(self, prompt):
        demanded = {"tool_choice": "required"} if self.task.get("demanded") and not self.messages else {}
        self.messages.append({"role": "user", "content": prompt})
        return self.ask(**demanded)

    def answer(self, results):
        self.messages += [{"role": "tool", "tool_call_id": id, "content": result} for id, _, result in results]
        return self.ask()

    def ask(self, **choice):
        answer = litellm.completion(messages=self.messages, stream=self.task["stream"], **self.fields, **choice)
        if self.task["stream"]:
            answer = litellm.stream_chunk_builder(list(answer), messages=self.messages)
        message = answer.choices[0].message
        self.messages.append(message.model_dump())
        return message.content, [(call.id, call.function.name) for call in message.tool_calls or []]


class Responses(journey.OpenaiItems):
    def __init__(self, task):
        super().__init__(task, **fields(task))

    def ask(self, **choice):
        answer = litellm.responses(input=self.items, stream=self.task["stream"], **self.fields, **choice)
        if self.task["stream"]:
            answer = journey.last_response(answer)
        output = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in answer.output]
        self.take(answer, output)
        texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
        return "\n".join(texts), [(item["call_id"], item["name"]) for item in output if item["type"] == "function_call"]


journey.run(lambda task: (Responses if task["api"] == "responses" else Completion)(task))
