"""LangChain's models over several turns: messages go back as the model gave them, streamed ones as the sum of their chunks."""

import functools
import operator

import journey
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

THINKING = {"enabled": {"type": "enabled", "budget_tokens": 1024}, "adaptive": {"type": "adaptive"}}


def look_up(city: str = "") -> str:
    """The client's own."""
    return journey.RESULT


def chat(task, **fields):
    return ChatOpenAI(model=task["model"], base_url=f"{journey.URL}/v1", api_key=journey.TOKEN, max_retries=0, timeout=40, **fields)


def responses(task):
    fields = {"reasoning": {"effort": "low", "summary": "auto"}} if task.get("reasoning") else {}
    if task.get("store") is False:
        fields |= {"store": False, "include": ["reasoning.encrypted_content"]}
    is_stateful = task.get("state") == "response"
    return chat(task, use_responses_api=True, output_version="responses/v1", use_previous_response_id=is_stateful, **fields)


def messages(task):
    fields = {"thinking": THINKING[task["thinking"]]} if "thinking" in task else {}
    return ChatAnthropic(
        model=task["model"], base_url=journey.URL, api_key=journey.TOKEN, max_retries=0, timeout=40, max_tokens=4096, **fields
    )


def generate(task):
    fields = {"include_thoughts": True} if task.get("thinking") else {}
    if task.get("json"):
        fields["response_mime_type"] = "application/json"
    if task.get("cached"):
        fields["cached_content"] = "cachedContents/1"
    # It makes at least one attempt, and counts that one.
    return ChatGoogleGenerativeAI(
        model=task["model"], base_url=journey.URL, api_key=journey.TOKEN, max_retries=1, timeout=40, **fields
    )


MODELS = {"chat": chat, "responses": responses, "messages": messages, "generate": generate}


class Conversation:
    def __init__(self, task):
        self.task, self.messages = task, []
        self.model = MODELS[task["api"]](task)
        self.tools = [
            StructuredTool.from_function(look_up, name=name, description=journey.DESCRIPTION) for name in journey.own_names(task)
        ]
        if task.get("search"):
            self.tools = [{"google_search": {}}]

    def say(self, prompt):
        demanded = {"tool_choice": "any"} if self.task.get("demanded") and not self.messages else {}
        self.messages.append(HumanMessage(prompt))
        return self.ask(**demanded)

    def answer(self, results):
        self.messages += [ToolMessage(result, tool_call_id=id, name=name) for id, name, result in results]
        return self.ask()

    def ask(self, **choice):
        model = self.model.bind_tools(self.tools, **choice) if self.tools else self.model
        if self.task["stream"]:
            answer = functools.reduce(operator.add, model.stream(self.messages))
        else:
            answer = model.invoke(self.messages)
        self.messages.append(answer)
        return answer.text, [(call["id"], call["name"]) for call in answer.tool_calls]


journey.run(Conversation)
