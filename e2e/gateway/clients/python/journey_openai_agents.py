"""OpenAI's Agents SDK over several turns: its runner runs the own tool by itself."""

import asyncio

import journey
from agents import (
    Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool, set_tracing_disabled,
)
from openai import AsyncOpenAI, OpenAI
from openai.types.shared import Reasoning

set_tracing_disabled(True)
MODELS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


class Conversation(journey.OwnLoop):
    def __init__(self, task):
        super().__init__(task)
        self.items = []
        tool = function_tool(self.look_up, name_override=journey.OWN, description_override=journey.DESCRIPTION)
        self.tools = [tool] if journey.own_names(task) else []
        # The state at the provider that a turn continues.
        self.state = {}
        if task.get("state") == "response":
            self.state = {"auto_previous_response_id": True}
        elif task.get("state") == "conversation":
            client = OpenAI(base_url=f"{journey.URL}/v1", api_key=journey.TOKEN)
            self.state = {"conversation_id": client.conversations.create().id}

    def settings(self):
        """Settings of the model, of those that the task names."""
        given = {"store": self.task["store"]} if "store" in self.task and self.task["api"] == "responses" else {}
        if self.task.get("reasoning"):
            given["reasoning"] = Reasoning(effort="low", summary="auto")
            if self.task.get("store") is False:
                given["response_include"] = ["reasoning.encrypted_content"]
        return ModelSettings(**given)

    def say(self, prompt):
        output = asyncio.run(self.turn(prompt))
        return output, self.counted()

    async def turn(self, prompt):
        client = AsyncOpenAI(base_url=f"{journey.URL}/v1", api_key=journey.TOKEN, max_retries=0, timeout=40)
        model = MODELS[self.task["api"]](model=self.task["model"], openai_client=client)
        agent = Agent(name="journey", model=model, model_settings=self.settings(), tools=self.tools)
        items = [*self.items, {"role": "user", "content": prompt}]
        options = {"run_config": RunConfig(tracing_disabled=True), **self.state}
        if self.task["stream"]:
            result = Runner.run_streamed(agent, items, **options)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, items, **options)
        if self.task.get("state") == "response":
            self.state["previous_response_id"] = result.last_response_id
        self.items = [] if self.state else result.to_input_list()
        return result.final_output


journey.run(Conversation)
