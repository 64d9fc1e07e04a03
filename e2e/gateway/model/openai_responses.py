"""OpenAI's responses: reads a request with the state that it names, and writes an answer whole and as events."""

import openai_responses_rules
from openai_chat import Chat
from openai_responses_store import Store, encrypt
from script import INPUT_TOKENS, OUTPUT_TOKENS, Turn, arguments, pieces, texts

THOUGHT = "The user wants something."


class Responses:
    def __init__(self):
        self.store = Store()

    def items(self, body):
        items = body.get("input")
        return [{"role": "user", "content": items}] if isinstance(items, str) else items or []

    def expanded(self, body):
        """The items that the model reads, of the state and of the request."""
        history = self.store.history(body)
        return history, self.store.resolve(self.items(body), body.get("store") is False)

    def read(self, request):
        body = request.body
        openai_responses_rules.check_request(body, self.items(body))
        history, own = self.expanded(body)
        items = [*history, *own]
        openai_responses_rules.check_history(items, self.store.items)
        users = [at for at, item in enumerate(items) if item.get("role") == "user"]
        last = users[-1] if users else 0
        kinds = [item.get("type") for item in items[last + 1:]]
        # A round is a run of calls: each is ended by its results.
        starts = [at for at, kind in enumerate(kinds) if kind == "function_call" and (at == 0 or kinds[at - 1] != kind)]
        names = {item["call_id"]: item["name"] for item in items if item.get("type") == "function_call"}

        def given(part):
            outputs = [item for item in part if item.get("type") == "function_call_output"]
            return [(names[item["call_id"]], texts(item["output"], ["output_text", "input_text"])) for item in outputs]

        return Turn(
            texts(items[last]["content"], ["input_text", "text"]) if users else None,
            [tool["name"] for tool in body.get("tools") or [] if tool["type"] == "function"],
            len(starts),
            [result for _, result in given(items[last + 1:])],
            given(items),
            body.get("tool_choice") != "none",
            body.get("parallel_tool_calls") is not False,
        )

    def output(self, request, answer):
        items, body = [], request.body
        status = "incomplete" if answer.is_cut else "completed"

        def add(prefix, kind, **fields):
            items.append({"id": f"{prefix}_{request.number}_{len(items)}", "type": kind, "status": "completed", **fields})

        if reasoning := body.get("reasoning"):
            summary = [{"type": "summary_text", "text": THOUGHT}] if reasoning.get("summary") else []
            is_wanted = "reasoning.encrypted_content" in (body.get("include") or [])
            encrypted = encrypt(request.number, THOUGHT) if is_wanted else None
            add("rs", "reasoning", summary=summary, encrypted_content=encrypted)
            del items[-1]["status"]
        if answer.text:
            part = {"type": "output_text", "text": "\n".join(answer.text), "annotations": [], "logprobs": []}
            add("msg", "message", role="assistant", content=[part])
        for call in answer.calls:
            add("fc", "function_call", call_id=call["id"], name=call["name"], arguments=arguments(answer, call))
        items[-1:] = [{**item, **({"status": status} if "status" in item else {})} for item in items[-1:]]
        return items

    def frame(self, request, status, output):
        body, is_done = request.body, status != "in_progress"
        usage = {
            "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        conversation = body.get("conversation")
        named = conversation if isinstance(conversation, dict) else conversation and {"id": conversation}
        return {
            "id": f"resp_{request.number}", "object": "response", "created_at": 1, "status": status, "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": None, "metadata": {}, "model": request.model, "output": output, "parallel_tool_calls": True,
            "previous_response_id": body.get("previous_response_id"), "conversation": named,
            "store": body.get("store") is not False, "reasoning": body.get("reasoning"), "temperature": 1.0,
            "tool_choice": "auto", "tools": body.get("tools") or [], "top_p": 1.0, "usage": usage if is_done else None,
        }

    def whole(self, request, answer):
        response = self.frame(request, "incomplete" if answer.is_cut else "completed", self.output(request, answer))
        history, own = self.expanded(request.body)
        self.store.record(request, history, own, response)
        return response

    def events(self, request, answer):
        number = 0

        def event(kind, **fields):
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number - 1, **fields}

        response = self.whole(request, answer)
        started = self.frame(request, "in_progress", [])
        yield event("response.created", response=started)
        yield event("response.in_progress", response=started)
        for at, item in enumerate(response["output"]):
            place = {"item_id": item["id"], "output_index": at}
            parts = {"message": self.message_events, "reasoning": self.reasoning_events, "function_call": self.call_events}
            yield event("response.output_item.added", output_index=at, item=self.begun(item))
            for kind, fields in parts[item["type"]](item):
                yield event(kind, **place, **fields)
            yield event("response.output_item.done", output_index=at, item=item)
        yield event(f"response.{response['status']}", response=response)

    def begun(self, item):
        """An item before its content."""
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": [], "encrypted_content": None}}
        status = {"status": "in_progress"} if "status" in item else {}
        return {**item, **status, **empty[item["type"]]}

    def message_events(self, item):
        part = item["content"][0]
        yield "response.content_part.added", {"content_index": 0, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield "response.output_text.delta", {"content_index": 0, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {"content_index": 0, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {"content_index": 0, "part": part}

    def reasoning_events(self, item):
        for index, part in enumerate(item["summary"]):
            yield "response.reasoning_summary_part.added", {"summary_index": index, "part": {**part, "text": ""}}
            for piece in pieces(part["text"]):
                yield "response.reasoning_summary_text.delta", {"summary_index": index, "delta": piece}
            yield "response.reasoning_summary_text.done", {"summary_index": index, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {"summary_index": index, "part": part}

    def call_events(self, item):
        for piece in pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", {"delta": piece}
        yield "response.function_call_arguments.done", {"arguments": item["arguments"], "name": item["name"]}

    error = Chat.error
