"""Anthropic's SDK over several turns: messages, with thinking, and its own loop over message threads."""

import anthropic

import journey

client = anthropic.Anthropic(base_url=journey.URL, api_key=journey.TOKEN, max_retries=0, timeout=40)
THINKING = {"enabled": {"type": "enabled", "budget_tokens": 1024}, "adaptive": {"type": "adaptive"}}


class Messages:
    def __init__(self, task):
        self.task, self.messages = task, []
        tools = [{"name": name, "description": journey.DESCRIPTION, "input_schema": journey.SCHEMA} for name in journey.own_names(task)]
        self.fields = {"tools": tools} if tools else {}
        if thinking := task.get("thinking"):
            self.fields["thinking"] = THINKING[thinking]

    def say(self, prompt):
        self.messages.append({"role": "user", "content": prompt})
        demanded = self.task.get("demanded") and len(self.messages) == 1
        return self.ask(**({"tool_choice": {"type": "any"}} if demanded else {}))

    def answer(self, results):
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": result} for id, _, result in results]
        self.messages.append({"role": "user", "content": blocks})
        return self.ask()

    def ask(self, **fields):
        request = {"model": self.task["model"], "max_tokens": 4096, "messages": self.messages, **self.fields, **fields}
        if self.task["stream"]:
            with client.messages.stream(**request) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**request)
        self.messages.append({"role": "assistant", "content": answer.content})
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        return text, [(block.id, block.name) for block in answer.content if block.type == "tool_use"]


class Runner(journey.OwnLoop):
    """The SDK's own loop, which keeps its conversation in a thread of the provider."""

    def __init__(self, task):
        super().__init__(task)
        self.messages = []
        tool = anthropic.beta_tool(self.look_up, name=journey.OWN, description=journey.DESCRIPTION)
        self.tools = [tool] if journey.own_names(task) else []

    def say(self, prompt):
        self.messages.append({"role": "user", "content": prompt})
        is_streamed = {"stream": True} if self.task["stream"] else {}
        runner = client.beta.messages.tool_runner(
            model=self.task["model"], max_tokens=4096, messages=self.messages, tools=self.tools, **is_streamed
        )
        texts = []
        for answer in runner:
            message = answer.get_final_message() if is_streamed else answer
            texts += [block.text for block in message.content if block.type == "text"]
        self.messages = list(runner._params["messages"])
        if self.messages[-1]["role"] == "user":
            self.messages.append({"role": "assistant", "content": message.content})
        return "\n".join(texts), self.counted()


journey.run(lambda task: (Runner if task.get("runner") else Messages)(task))
