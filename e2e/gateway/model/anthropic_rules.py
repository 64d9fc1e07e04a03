"""Rules of Anthropic's messages for the history: pairing of tool blocks, ids, empty texts, fields, cache marks."""

import re

from refusal import check

ID = re.compile(r"[a-zA-Z0-9_-]+")
MOST_CACHE_MARKS = 4
FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "cache_control", "citations", "context", "title"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
REQUEST = {
    "max_tokens", "messages", "model", "cache_control", "container", "context_management", "inference_geo", "mcp_servers",
    "metadata", "output_config", "output_format", "service_tier", "speed", "stop_sequences", "stream", "system",
    "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p", "user_profile_id",
}
THREADS = "message-threads-2026-08-12"


def blocks(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def check_fields(request):
    body = request.body
    check(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    known = REQUEST | ({"thread"} if THREADS in request.betas else set())
    unknown = next((name for name in body if name not in known), None)
    check(unknown is None, f"{unknown}: Extra inputs are not permitted")


def check_messages(messages):
    check(messages, "messages: at least one message is required")
    for at, message in enumerate(messages):
        role = message.get("role")
        what = "The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role."
        check(role in ("user", "assistant"), f"messages: Unexpected role \"{role}\". {what}")
        is_last_of_model = at + 1 == len(messages) and role == "assistant"
        empty = f"messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        check(blocks(message.get("content")) or is_last_of_model, empty)
        for place, block in enumerate(blocks(message.get("content"))):
            check_block(block, role, f"messages.{at}.content.{place}")
    check(messages[0]["role"] == "user", "messages: first message must use the \"user\" role")


def check_block(block, role, where):
    kind = block.get("type")
    known = ", ".join(f"'{name}'" for name in FIELDS)
    what = f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {known}"
    check(kind in FIELDS, what)
    unknown = next((name for name in block if name not in FIELDS[kind]), None)
    check(unknown is None, f"{where}.{kind}.{unknown}: Extra inputs are not permitted")
    if kind == "text":
        check_text(block, "messages", f"{where}.text")
    if kind == "tool_use":
        check(role == "assistant", f"{where}: `tool_use` blocks can only be in `assistant` messages")
        check_id(block.get("id"), f"{where}.tool_use.id")
        check(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result":
        check(role == "user", f"{where}: `tool_result` blocks can only be in `user` messages")
        check_id(block.get("tool_use_id"), f"{where}.tool_result.tool_use_id")
        for place, inner in enumerate(blocks(block.get("content"))):
            if inner.get("type") == "text" and "cache_control" in inner:
                marked = f"{where}.tool_result.content.{place}.text: cache_control cannot be set for empty text blocks"
                check(inner.get("text"), marked)
    if kind in ("thinking", "redacted_thinking"):
        check(role == "assistant", f"{where}: `{kind}` blocks can only be in `assistant` messages")


def check_text(block, top, where):
    text = block.get("text") or ""
    check(text or "cache_control" not in block, f"{where}: cache_control cannot be set for empty text blocks")
    check(text, f"{top}: text content blocks must be non-empty")
    check(text.strip(), f"{top}: text content blocks must contain non-whitespace text")


def check_id(id, where):
    is_legal = isinstance(id, str) and ID.fullmatch(id)
    check(is_legal, f"{where}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def merge(messages):
    """Messages of one role that follow each other are one turn."""
    turns = []
    for message in messages:
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1]["content"] += blocks(message["content"])
        else:
            turns.append({"role": message["role"], "content": [*blocks(message["content"])]})
    return turns


def check_pairs(turns):
    seen = set()
    for at, turn in enumerate(turns):
        for place, block in enumerate(turn["content"]):
            if block["type"] == "tool_use":
                check(block["id"] not in seen, f"messages.{at}.content.{place}: `tool_use` ids must be unique")
                seen.add(block["id"])
        called = [block["id"] for block in turns[at - 1]["content"] if block["type"] == "tool_use"] if at else []
        check_results(turn, at, called)
        check_answered(turn, at, turns[at + 1] if at + 1 < len(turns) else None)


def check_results(turn, at, called):
    answered = set()
    for place, block in enumerate(turn["content"]):
        if block["type"] == "tool_result":
            id, where = block["tool_use_id"], f"messages.{at}.content.{place}"
            each = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            check(id in called, f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. {each}")
            twice = f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            check(id not in answered, twice)
            answered.add(id)


def check_answered(turn, at, following):
    """Results come first in the next turn: what stands after another block does not count."""
    called = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
    given = []
    for block in following["content"] if following else []:
        if block["type"] != "tool_result":
            break
        given.append(block["tool_use_id"])
    absent = ", ".join(id for id in called if id not in given)
    each = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    check(not absent, f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {absent}. {each}")
    after_call = False
    for place, block in enumerate(turn["content"]):
        after_call |= block["type"] == "tool_use"
        check(not after_call or block["type"] != "text", f"messages.{at}.content.{place}: text stands after `tool_use`")


def check_cache_marks(body, messages):
    """Marks of tools, system and messages count alike, those in results too."""
    marked = [body, *(body.get("tools") or []), *blocks(body.get("system"))]
    for message in messages:
        for block in blocks(message.get("content")):
            marked.append(block)
            inner = block.get("content")
            marked += inner if isinstance(inner, list) else []
    number = sum(1 for holder in marked if holder.get("cache_control"))
    check(number <= MOST_CACHE_MARKS, f"A maximum of {MOST_CACHE_MARKS} blocks with cache_control may be provided. Found {number}.")
    for place, block in enumerate(blocks(body.get("system"))):
        check_text(block, "system", f"system.{place}.text")
