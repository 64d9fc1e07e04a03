"""OpenAI's chat completions and responses: each reads a request, and writes an answer whole and as events."""

import json

from script import check, Turn, texts, pieces, INPUT_TOKENS, OUTPUT_TOKENS


class Chat:
    @staticmethod
    def read(body):
        messages = body["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user"]
        for at, message in enumerate(messages):
            wanted = [call["id"] for call in message.get("tool_calls") or []]
            following = [m.get("tool_call_id") for m in messages[at + 1:at + 1 + len(wanted)] if m["role"] == "tool"]
            check(sorted(wanted) == sorted(following), f"messages[{at}]: tool calls must be followed by their results")
            for call in message.get("tool_calls") or []:
                json.loads(call["function"]["arguments"])
        last = users[-1] if users else 0
        tail = messages[last + 1:]
        return Turn(
            texts(messages[last]["content"], ["text"]) if users else None,
            [tool["function"]["name"] for tool in body.get("tools") or []],
            sum(1 for message in tail if message.get("tool_calls")),
            [texts(message["content"], ["text"]) for message in tail if message["role"] == "tool"],
        )

    @staticmethod
    def frame(body, kind):
        return {"id": f"chatcmpl-{body['number']}", "object": kind, "created": 1, "model": body["model"]}

    @staticmethod
    def usage():
        total = INPUT_TOKENS + OUTPUT_TOKENS
        return {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total}

    @classmethod
    def whole(cls, body, text, calls):
        message = {"role": "assistant", "content": "\n".join(text) or None, "refusal": None}
        if calls:
            message["tool_calls"] = [
                {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["input"])}}
                for call in calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
        return {**cls.frame(body, "chat.completion"), "choices": [choice], "usage": cls.usage()}

    @classmethod
    def events(cls, body, text, calls):
        frame = cls.frame(body, "chat.completion.chunk")

        def chunk(delta, reason=None):
            return None, {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

        yield chunk({"role": "assistant", "content": "" if text else None})
        for piece in pieces("\n".join(text)):
            yield chunk({"content": piece})
        for index, call in enumerate(calls):
            function = {"name": call["name"], "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        # The arguments of all calls come interleaved.
        streams = [pieces(json.dumps(call["input"])) for call in calls]
        for place in range(max(map(len, streams), default=0)):
            for index, stream in enumerate(streams):
                if place < len(stream):
                    yield chunk({"tool_calls": [{"index": index, "function": {"arguments": stream[place]}}]})
        yield chunk({}, "tool_calls" if calls else "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            yield None, {**frame, "choices": [], "usage": cls.usage()}
        yield None, "[DONE]"


class Responses:
    @staticmethod
    def read(body):
        items = body["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
        outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
        check(sorted(calls) == sorted(outputs), f"calls {calls} and outputs {outputs} do not match")
        users = [at for at, item in enumerate(items) if item.get("role") == "user"]
        last = users[-1] if users else 0
        kinds = [item.get("type") for item in items[last + 1:]]
        # A round is a run of calls: each is ended by its results.
        starts = [at for at, kind in enumerate(kinds) if kind == "function_call" and (at == 0 or kinds[at - 1] != kind)]
        results = [item["output"] for item in items[last + 1:] if item.get("type") == "function_call_output"]
        return Turn(
            texts(items[last]["content"], ["input_text", "text"]) if users else None,
            [tool["name"] for tool in body.get("tools") or [] if tool["type"] == "function"],
            len(starts),
            [texts(result, ["output_text", "input_text"]) for result in results],
        )

    @staticmethod
    def output(body, text, calls):
        items = []

        def add(prefix, kind, **fields):
            items.append({"id": f"{prefix}_{body['number']}_{len(items)}", "type": kind, "status": "completed", **fields})

        if text:
            part = {"type": "output_text", "text": "\n".join(text), "annotations": [], "logprobs": []}
            add("msg", "message", role="assistant", content=[part])
        for call in calls:
            arguments = json.dumps(call["input"])
            add("fc", "function_call", call_id=call["id"], name=call["name"], arguments=arguments)
        return items

    @classmethod
    def whole(cls, body, text, calls, status="completed"):
        is_done = status == "completed"
        usage = {
            "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        return {
            "id": f"resp_{body['number']}", "object": "response", "created_at": 1, "status": status, "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "model": body["model"],
            "output": cls.output(body, text, calls) if is_done else [], "parallel_tool_calls": True, "temperature": 1.0,
            "tool_choice": "auto", "tools": body.get("tools") or [], "top_p": 1.0, "usage": usage if is_done else None,
        }

    @classmethod
    def events(cls, body, text, calls):
        number = 0

        def event(kind, **fields):
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number - 1, **fields}

        started = cls.whole(body, text, calls, "in_progress")
        yield event("response.created", response=started)
        yield event("response.in_progress", response=started)
        for at, item in enumerate(cls.output(body, text, calls)):
            place = {"item_id": item["id"], "output_index": at}
            if item["type"] == "message":
                part = item["content"][0]
                yield event("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "content": []})
                yield event("response.content_part.added", **place, content_index=0, part={**part, "text": ""})
                for piece in pieces(part["text"]):
                    yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
                yield event("response.output_text.done", **place, content_index=0, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **place, content_index=0, part=part)
            else:
                yield event("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "arguments": ""})
                for piece in pieces(item["arguments"]):
                    yield event("response.function_call_arguments.delta", **place, delta=piece)
                done = {"arguments": item["arguments"], "name": item["name"]}
                yield event("response.function_call_arguments.done", **place, **done)
            yield event("response.output_item.done", output_index=at, item=item)
        yield event("response.completed", response=cls.whole(body, text, calls))
