"""Rules of OpenAI's responses: pairing of calls and outputs, reasoning without its follower, foreign items, tools."""

import re

from openai_responses_store import is_own
from openai_tools import check_choice, check_length, check_name, check_tools, names_in_choice
from refusal import check

LONGEST_CALL_ID = 64
PREFIXES = {"reasoning": "rs", "function_call": "fc", "message": "msg"}
COMMON = {"id", "type", "status"}
FIELDS = {
    "message": COMMON | {"role", "content", "phase"},
    "reasoning": {"id", "type", "summary", "content", "encrypted_content"},
    "function_call": COMMON | {"call_id", "name", "arguments", "namespace", "caller"},
    "function_call_output": COMMON | {"call_id", "output", "name", "namespace", "caller"},
    "item_reference": {"id", "type"},
}


def kind_of(item):
    return item.get("type") or "message"


def is_of_model(item):
    kind = kind_of(item)
    return item.get("role") == "assistant" if kind == "message" else kind.endswith("_call")


def check_request(body, items):
    """`items` are those of the request alone, as they were sent."""
    check(items, "Missing required parameter: 'input'.", param="input", code="missing_required_parameter")
    for at, item in enumerate(items):
        check_item(item, f"input[{at}]")
    ids = [item["id"] for item in items if item.get("id") and kind_of(item) != "item_reference"]
    twice = next((id for id in ids if ids.count(id) > 1), None)
    check(twice is None, f"Duplicate item found with id {twice}. Remove duplicate items from your input and try again.", param="input")
    tools = body.get("tools")
    functions = [(f"tools[{at}]", tool) for at, tool in enumerate(tools or []) if tool.get("type") == "function"]
    check_tools(tools, functions)
    check_choice(body, names_in_choice(body.get("tool_choice")), [tool.get("name") for _, tool in functions])


def check_item(item, where):
    kind = kind_of(item)
    allowed = FIELDS.get(kind)
    supported = ", ".join(f"'{name}'" for name in FIELDS)
    check(allowed, f"Invalid value: '{kind}'. Supported values are: {supported}.", param=where, code="invalid_value")
    unknown = next((name for name in item if name not in allowed), None)
    check(unknown is None, f"Unknown parameter: '{where}.{unknown}'.", param=f"{where}.{unknown}", code="unknown_parameter")
    if kind == "message":
        supported = "Supported values are: 'assistant', 'system', 'developer', and 'user'."
        is_known = item.get("role") in ("assistant", "system", "developer", "user")
        check(is_known, f"Invalid value: '{item.get('role')}'. {supported}", param=f"{where}.role", code="invalid_value")
    if kind in PREFIXES and item.get("id") is not None:
        check_id(item["id"], PREFIXES[kind], f"{where}.id")
    if kind.startswith("function_call"):
        check_length(item.get("call_id") or "", LONGEST_CALL_ID, f"{where}.call_id")
    if kind == "function_call":
        check_name(item.get("name"), f"{where}.name")
    if kind == "reasoning":
        missing = f"Missing required parameter: '{where}.summary'."
        check("summary" in item, missing, param=f"{where}.summary", code="missing_required_parameter")
        check_encrypted(item.get("encrypted_content"))


def check_id(id, prefix, where):
    legal = "Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters."
    is_legal = re.fullmatch(r"[a-zA-Z0-9_-]+", id)
    check(is_legal, f"Invalid '{where}': '{id}'. {legal}", param=where, code="invalid_value")
    what = f"Invalid '{where}': '{id}'. Expected an ID that begins with '{prefix}'."
    check(id.startswith(prefix), what, param=where, code="invalid_value")


def check_encrypted(encrypted):
    if encrypted is None:
        return
    shown = f"{encrypted[:4]}...{encrypted[-4:]}"
    what = f"The encrypted content {shown} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
    check(is_own(encrypted), what, code="invalid_encrypted_content")


def check_history(items, known):
    """`items` are all that the model will read, `known` what the provider remembers of those that it has made."""
    called = set()
    for item in items:
        kind = kind_of(item)
        if kind == "function_call":
            called.add(item.get("call_id"))
        elif kind == "function_call_output":
            missing = f"No tool call found for function call output with call_id {item.get('call_id')}."
            check(item.get("call_id") in called, missing, param="input")
    answered = [item.get("call_id") for item in items if kind_of(item) == "function_call_output"]
    for item in items:
        if kind_of(item) == "function_call":
            missing = f"No tool output found for function call {item.get('call_id')}."
            check(item.get("call_id") in answered, missing, param="input")
    for at, item in enumerate(items):
        check_reasoning(item, items[:at], items[at + 1] if at + 1 < len(items) else None, known)


def check_reasoning(item, before, following, known):
    memory = known.get(item.get("id")) or {}
    if item.get("type") == "reasoning":
        follows = following is not None and is_of_model(following)
        # Without its id, an item cannot be compared with the one that belongs there.
        is_own_follower = follows and following.get("id") in (None, memory.get("follower") or following.get("id"))
        missing = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        check(is_own_follower, missing, param="input")
    elif reasoning := memory.get("reasoning"):
        missing = f"Item '{item['id']}' of type '{kind_of(item)}' was provided without its required 'reasoning' item: '{reasoning}'."
        check(any(other.get("id") == reasoning for other in before), missing, param="input")
