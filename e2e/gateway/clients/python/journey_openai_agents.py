"""OpenAI's Agents SDK over several turns: its runner runs the own tool by itself."""

import asyncio

import journey
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
MODELS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


class Conversation(journey.OwnLoop):
    def __init__(self, task):
        super().__init__(task)
        self.items = []
        tool = function_tool(self.look_up, name_override=journey.OWN, description_override=journey.DESCRIPTION)
        self.tools = [tool] if journey.own_names(task) else []

    def say(self, prompt):
        output = asyncio.run(self.turn(prompt))
        return output, self.counted()

    async def turn(self, prompt):
        client = AsyncOpenAI(base_url=f"{journey.URL}/v1", api_key=journey.TOKEN, max_retries=0, timeout=40)
        model = MODELS[self.task["api"]](model=self.task["model"], openai_client=client)
        agent = Agent(name="journey", model=model, tools=self.tools)
        items = [*self.items, {"role": "user", "content": prompt}]
        if self.task["stream"]:
            result = Runner.run_streamed(agent, items, run_config=RunConfig(tracing_disabled=True))
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, items, run_config=RunConfig(tracing_disabled=True))
        self.items = result.to_input_list()
        return result.final_output


journey.run(Conversation)
