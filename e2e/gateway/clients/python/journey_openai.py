"""OpenAI's SDK over several turns: chat completions, responses with items, and with state at the provider."""

import openai

import journey

client = openai.OpenAI(base_url=f"{journey.URL}/v1", api_key=journey.TOKEN, max_retries=0, timeout=40)


class Chat:
    def __init__(self, task):
        self.task, self.messages = task, []
        functions = [{"name": name, "description": journey.DESCRIPTION, "parameters": journey.SCHEMA} for name in journey.own_names(task)]
        self.fields = {"tools": [{"type": "function", "function": function} for function in functions]} if functions else {}

    def say(self, prompt):
        self.messages.append({"role": "user", "content": prompt})
        demanded = {"tool_choice": "required"} if self.task.get("demanded") and len(self.messages) == 1 else {}
        return self.ask(**demanded)

    def answer(self, results):
        self.messages += [{"role": "tool", "tool_call_id": id, "content": result} for id, _, result in results]
        return self.ask()

    def ask(self, **fields):
        request = {"model": self.task["model"], "messages": self.messages, **self.fields, **fields}
        if self.task["stream"]:
            with client.chat.completions.stream(**request) as stream:
                answer = whole(stream)
        else:
            answer = client.chat.completions.create(**request)
        message = answer.choices[0].message
        of_bare = {"include": {"role", "content", "tool_calls"}} if self.task.get("bare") else {"exclude": {"parsed"}}
        turn = message.model_dump(exclude_none=True, **of_bare)
        for call in turn.get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
        self.messages.append({"content": None, **turn} if turn.get("tool_calls") else {"content": "", **turn})
        return message.content, [(call.id, call.function.name) for call in message.tool_calls or []]


class Responses(journey.OpenaiItems):
    def __init__(self, task):
        super().__init__(task)
        if task.get("state") == "conversation":
            self.fields["conversation"] = client.conversations.create().id

    def ask(self, **fields):
        request = {"input": self.items, **self.fields, **fields}
        if self.task["stream"]:
            with client.responses.stream(**request) as stream:
                answer = journey.last_response(stream)
        else:
            answer = client.responses.create(**request)
        self.take(answer, [carried(item) for item in answer.output])
        calls = [(item.call_id, item.name) for item in answer.output if item.type == "function_call"]
        return answer.output_text, calls


def whole(stream):
    """The answer of a chat's stream. The SDK gives one that reached its limit as an error."""
    try:
        return stream.get_final_completion()
    except openai.LengthFinishReasonError as cut:
        return cut.completion


def carried(item):
    """An item of an answer as the next request takes it."""
    turn = item.model_dump(exclude_none=True, exclude={"parsed_arguments"})
    for part in turn.get("content") or []:
        part.pop("parsed", None)
    return turn


journey.run(lambda task: {"chat": Chat, "responses": Responses}[task["api"]](task))
