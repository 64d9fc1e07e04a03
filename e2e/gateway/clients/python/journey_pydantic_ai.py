"""Pydantic AI over several turns: its agent runs the own tool by itself."""

import journey
from openai import OpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider


def model(task):
    openai = {"base_url": f"{journey.URL}/v1", "api_key": journey.TOKEN}
    plain = {"base_url": journey.URL, "api_key": journey.TOKEN}
    makers = {
        "chat": lambda name: OpenAIChatModel(name, provider=OpenAIProvider(**openai)),
        "responses": lambda name: OpenAIResponsesModel(name, provider=OpenAIProvider(**openai)),
        "messages": lambda name: AnthropicModel(name, provider=AnthropicProvider(**plain)),
        "generate": lambda name: GoogleModel(name, provider=GoogleProvider(**plain)),
    }
    return makers[task["api"]](task["model"])


THINKING = {"enabled": {"type": "enabled", "budget_tokens": 1024}, "adaptive": {"type": "adaptive"}}


def settings(task):
    """Settings of the model, of those that the task names."""
    given = {"max_tokens": 4096}
    if task["api"] == "messages" and task.get("thinking"):
        given["anthropic_thinking"] = THINKING[task["thinking"]]
    if task["api"] == "generate" and task.get("thinking"):
        given["google_thinking_config"] = {"include_thoughts": True}
    if task["api"] != "responses":
        return given
    if "store" in task:
        given["openai_store"] = task["store"]
    if task.get("reasoning"):
        given |= {"openai_reasoning_effort": "low", "openai_reasoning_summary": "auto"}
    if task.get("state") == "response":
        given["openai_previous_response_id"] = "auto"
    elif task.get("state") == "conversation":
        client = OpenAI(base_url=f"{journey.URL}/v1", api_key=journey.TOKEN)
        given["openai_conversation_id"] = client.conversations.create().id
    return given


async def read_on(_, events):
    async for _ in events:
        pass


class Conversation(journey.OwnLoop):
    def __init__(self, task):
        super().__init__(task)
        self.history = []
        self.agent = Agent(model(task), retries=0, model_settings=settings(task))
        if journey.own_names(task):
            self.agent.tool_plain(name=journey.OWN, description=journey.DESCRIPTION)(self.look_up)

    def say(self, prompt):
        # With a handler of events the model's answers are streamed.
        handler = {"event_stream_handler": read_on} if self.task["stream"] else {}
        result = self.agent.run_sync(prompt, message_history=self.history, **handler)
        self.history = result.all_messages()
        return result.output, self.counted()


journey.run(Conversation)
