"""OpenAI's chat completions: reads a request, and writes an answer whole and as events."""

import openai_chat_rules
from script import INPUT_TOKENS, OUTPUT_TOKENS, Turn, arguments, pieces, texts


class Chat:
    def read(self, request):
        body = request.body
        openai_chat_rules.check_request(body)
        messages = body["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user"]
        last = users[-1] if users else 0
        tail = messages[last + 1:]
        names = {call["id"]: call["function"]["name"] for message in messages for call in message.get("tool_calls") or []}
        given = [(names[m["tool_call_id"]], texts(m["content"], ["text"])) for m in messages if m["role"] == "tool"]
        return Turn(
            texts(messages[last]["content"], ["text"]) if users else None,
            [tool["function"]["name"] for tool in body.get("tools") or [] if "function" in tool],
            sum(1 for message in tail if message.get("tool_calls")),
            [texts(message["content"], ["text"]) for message in tail if message["role"] == "tool"],
            given,
            body.get("tool_choice") != "none",
            body.get("parallel_tool_calls") is not False,
        )

    def frame(self, request, kind):
        return {"id": f"chatcmpl-{request.number}", "object": kind, "created": 1, "model": request.model}

    def usage(self):
        total = INPUT_TOKENS + OUTPUT_TOKENS
        return {
            "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0},
        }

    def reason(self, answer):
        if answer.is_cut:
            return "length"
        return "tool_calls" if answer.calls else "stop"

    def whole(self, request, answer):
        message = {"role": "assistant", "content": "\n".join(answer.text) or None, "refusal": None}
        if answer.calls:
            functions = [{"name": call["name"], "arguments": arguments(answer, call)} for call in answer.calls]
            ids = [call["id"] for call in answer.calls]
            message["tool_calls"] = [{"id": id, "type": "function", "function": it} for id, it in zip(ids, functions)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.reason(answer)}
        return {**self.frame(request, "chat.completion"), "choices": [choice], "usage": self.usage()}

    def events(self, request, answer):
        frame = self.frame(request, "chat.completion.chunk")

        def chunk(delta, reason=None):
            return None, {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

        yield chunk({"role": "assistant", "content": "" if answer.text else None})
        for piece in pieces("\n".join(answer.text)):
            yield chunk({"content": piece})
        for index, call in enumerate(answer.calls):
            function = {"name": call["name"], "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        # The arguments of all calls come interleaved.
        streams = [pieces(arguments(answer, call)) for call in answer.calls]
        for place in range(max(map(len, streams), default=0)):
            for index, stream in enumerate(streams):
                if place < len(stream):
                    yield chunk({"tool_calls": [{"index": index, "function": {"arguments": stream[place]}}]})
        yield chunk({}, self.reason(answer))
        if (request.body.get("stream_options") or {}).get("include_usage"):
            yield None, {**frame, "choices": [], "usage": self.usage()}
        yield None, "[DONE]"

    def error(self, request, refused):
        kinds = {429: "rate_limit_error", 500: "server_error", 529: "server_error"}
        fields = {"param": None, "code": None, **refused.fields}
        return {"error": {"message": str(refused), "type": kinds.get(refused.status, "invalid_request_error"), **fields}}
