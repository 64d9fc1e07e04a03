"""Pydantic AI over several turns: its agent runs the own tool by itself."""

import journey
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


async def read_on(_, events):
    async for _ in events:
        pass


class Conversation(journey.OwnLoop):
    def __init__(self, task):
        super().__init__(task)
        self.history = []
        self.agent = Agent(model(task), retries=0, model_settings={"max_tokens": 4096})
        if journey.own_names(task):
            self.agent.tool_plain(name=journey.OWN, description=journey.DESCRIPTION)(self.look_up)

    def say(self, prompt):
        # With a handler of events the model's answers are streamed.
        handler = {"event_stream_handler": read_on} if self.task["stream"] else {}
        result = self.agent.run_sync(prompt, message_history=self.history, **handler)
        self.history = result.all_messages()
        return result.output, self.counted()


journey.run(Conversation)
