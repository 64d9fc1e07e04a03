"""Anthropic's messages and Gemini's generateContent: each reads a request, and writes an answer whole and as events."""

import itertools
import json

from script import check, Turn, texts, pieces, INPUT_TOKENS, OUTPUT_TOKENS, SIGNATURE


class Messages:
    @staticmethod
    def read(body):
        check(isinstance(body.get("max_tokens"), int), "max_tokens: field required")
        turns = [(m["role"], m["content"] if isinstance(m["content"], list) else [{"type": "text", "text": m["content"]}])
                 for m in body["messages"]]
        prompt, rounds, results = None, 0, []
        for at, (role, blocks) in enumerate(turns):
            check(blocks, f"messages.{at}: content is empty")
            wanted = [block["id"] for block in blocks if block["type"] == "tool_use"]
            after_call = itertools.dropwhile(lambda block: block["type"] != "tool_use", blocks)
            check(all(block["type"] != "text" for block in after_call), f"messages.{at}: text stands after tool_use")
            following = turns[at + 1][1] if at + 1 < len(turns) else []
            given = [block["tool_use_id"] for block in following if block["type"] == "tool_result"]
            check(sorted(wanted) == sorted(given), f"messages.{at}: tool_use must be followed by tool_result")
            if role == "user" and (text := texts(blocks, ["text"])) is not None:
                prompt, rounds, results = text, 0, []
            rounds += bool(wanted)
            results += [texts(block.get("content"), ["text"]) or "" for block in blocks if block["type"] == "tool_result"]
        return Turn(prompt, [tool["name"] for tool in body.get("tools") or []], rounds, results)

    @staticmethod
    def usage():
        return {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}

    @classmethod
    def whole(cls, body, text, calls):
        content = [{"type": "text", "text": "\n".join(text)}] if text else []
        content += [{"type": "tool_use", "id": f"toolu_{call['id']}", "name": call["name"], "input": call["input"]} for call in calls]
        return {
            "id": f"msg_{body['number']}", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None, "usage": cls.usage(),
        }

    @classmethod
    def events(cls, body, text, calls):
        def event(kind, **fields):
            return kind, {"type": kind, **fields}

        whole = cls.whole(body, text, calls)
        started = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1}}
        yield event("message_start", message=started)
        yield event("ping")
        for index, block in enumerate(whole["content"]):
            is_text = block["type"] == "text"
            yield event("content_block_start", index=index, content_block={**block, **({"text": ""} if is_text else {"input": {}})})
            for piece in pieces(block["text"] if is_text else json.dumps(block["input"])):
                delta = {"type": "text_delta", "text": piece} if is_text else {"type": "input_json_delta", "partial_json": piece}
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=ended, usage={"output_tokens": OUTPUT_TOKENS})
        yield event("message_stop")


class Gemini:
    @staticmethod
    def read(body):
        prompt, rounds, results = None, 0, []
        contents = body["contents"]
        config = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        is_any = config.get("mode") == "ANY"
        check(is_any or "allowedFunctionNames" not in config, "set allowed_function_names only when function calling mode is ANY")
        for at, content in enumerate(contents):
            parts = content["parts"]
            check(parts, f"contents[{at}].parts is empty")
            wanted = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
            following = contents[at + 1]["parts"] if at + 1 < len(contents) else []
            given = [part["functionResponse"]["name"] for part in following if "functionResponse" in part]
            check(sorted(wanted) == sorted(given), f"contents[{at}]: calls {wanted} need as many responses, not {given}")
            signed = [part.get("thoughtSignature") for part in parts if "functionCall" in part][:1]
            check(signed in ([], [SIGNATURE]), f"contents[{at}]: the first function call lacks its thought_signature")
            text = texts(parts, ["text"])
            if content.get("role", "user") == "user" and text is not None:
                prompt, rounds, results = text, 0, []
            rounds += bool(wanted)
            results += [json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
        tools = [one["name"] for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
        return Turn(prompt, tools, rounds, results)

    @staticmethod
    def frame(body, parts, reason=None):
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
        answer = {"candidates": [candidate], "modelVersion": body["model"], "responseId": f"r{body['number']}"}
        if reason:
            candidate["finishReason"] = reason
            total = INPUT_TOKENS + OUTPUT_TOKENS
            counts = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS, "totalTokenCount": total}
            answer["usageMetadata"] = counts
        return answer

    @staticmethod
    def calls(calls):
        parts = [{"functionCall": {"name": call["name"], "args": call["input"]}} for call in calls]
        if parts:
            parts[0]["thoughtSignature"] = SIGNATURE
        return parts

    @classmethod
    def whole(cls, body, text, calls):
        return cls.frame(body, ([{"text": "\n".join(text)}] if text else []) + cls.calls(calls), "STOP")

    @classmethod
    def events(cls, body, text, calls):
        for piece in pieces("\n".join(text)):
            yield None, cls.frame(body, [{"text": piece}])
        for part in cls.calls(calls):
            yield None, cls.frame(body, [part])
        yield None, cls.frame(body, [{"text": ""}], "STOP")
