"""Errors of the gateway as each SDK raises them: a turn's words are the exception's class, its message and its body."""

import anthropic
import openai
from google import genai
from google.genai import types

import journey

WRONG = {"x-skillet-skills": "some"}


def openai_client(token):
    return openai.OpenAI(base_url=f"{journey.URL}/v1", api_key=token, max_retries=0, timeout=40)


def anthropic_client(token):
    return anthropic.Anthropic(base_url=journey.URL, auth_token=token, max_retries=0, timeout=40)


class Chat:
    make = staticmethod(openai_client)

    def ask(self, client, model, prompt, headers, stream):
        messages = [{"role": "user", "content": prompt}]
        answer = client.chat.completions.create(model=model, messages=messages, stream=stream, extra_headers=headers)
        return list(answer) if stream else answer


class Responses:
    make = staticmethod(openai_client)

    def ask(self, client, model, prompt, headers, stream):
        answer = client.responses.create(model=model, input=prompt, stream=stream, extra_headers=headers)
        return list(answer) if stream else answer


class Messages:
    make = staticmethod(anthropic_client)

    def ask(self, client, model, prompt, headers, stream):
        messages = [{"role": "user", "content": prompt}]
        answer = client.messages.create(model=model, messages=messages, max_tokens=99, stream=stream, extra_headers=headers)
        return list(answer) if stream else answer


class Generate:
    @staticmethod
    def make(token):
        return genai.Client(api_key=token, http_options=types.HttpOptions(base_url=journey.URL, timeout=40_000))

    def ask(self, client, model, prompt, headers, stream):
        config = types.GenerateContentConfig(http_options=types.HttpOptions(headers=headers))
        if stream:
            return list(client.models.generate_content_stream(model=model, contents=prompt, config=config))
        return client.models.generate_content(model=model, contents=prompt, config=config)


class Errors:
    def __init__(self, task):
        self.api = {"chat": Chat, "responses": Responses, "messages": Messages, "generate": Generate}[task["api"]]()
        self.model = task["model"]

    def say(self, what):
        try:
            self.fail(what)
        except Exception as raised:  # noqa: BLE001
            body = getattr(raised, "body", None) or getattr(raised, "details", None)
            return f"{type(raised).__name__}: {raised} {body}", []
        return "nothing was raised", []

    def fail(self, what):
        client = self.api.make("nobody" if what == "token" else journey.TOKEN)
        if what == "path":
            return client.post("/nothing" if self.api.make is openai_client else "/v1/nothing", cast_to=object)
        prompt = "fault break 9 and say one two three" if what == "broken" else "say hi"
        return self.api.ask(client, self.model, prompt, WRONG if what == "header" else {}, what == "broken")


journey.run(Errors)
