"""Rules of OpenAI's chat completions: order and pairing of tool messages, ids, contents, tools."""

from openai_tools import check_choice, check_length, check_name, check_tools, names_in_choice
from refusal import check

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
LONGEST_ID = 40


def check_request(body):
    messages = body.get("messages")
    check(isinstance(messages, list), "Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter")
    empty = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
    check(messages, empty, param="messages", code="empty_array")
    for at, message in enumerate(messages):
        check_message(message, at)
    check_pairs(messages)
    tools = body.get("tools")
    functions = [(f"tools[{at}].function", tool["function"]) for at, tool in enumerate(tools or []) if "function" in tool]
    check_tools(tools, functions)
    check_choice(body, names_in_choice(body.get("tool_choice")), [function.get("name") for _, function in functions])


def check_message(message, at):
    role = message.get("role")
    supported = "Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
    check(role in ROLES, f"Invalid value: '{role}'. {supported}", param=f"messages[{at}].role", code="invalid_value")
    calls = message.get("tool_calls")
    if calls is not None:
        where = f"messages[{at}].tool_calls"
        empty = f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
        check(calls, empty, param=where, code="empty_array")
        for number, call in enumerate(calls):
            check_length(call.get("id") or "", LONGEST_ID, f"{where}[{number}].id")
            if function := call.get("function"):
                check_name(function.get("name"), f"{where}[{number}].function.name")
    has_content = message.get("content") is not None or calls or message.get("function_call") or message.get("refusal")
    what = "Invalid value for 'content': expected a string, got null."
    check(has_content or message.get("audio"), what, param=f"messages.[{at}].content")
    if role == "tool":
        check_length(message.get("tool_call_id") or "", LONGEST_ID, f"messages[{at}].tool_call_id")


def check_pairs(messages):
    """A message with calls is followed at once by one tool message for each of them, in any order."""
    waiting = []
    for at, message in enumerate([*messages, {"role": None}]):
        if message["role"] == "tool":
            check_tool_message(message, at, messages, waiting)
            continue
        check_answered(waiting, at)
        waiting = [call.get("id") for call in message.get("tool_calls") or []]


def check_tool_message(message, at, messages, waiting):
    id = message.get("tool_call_id")
    missing = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
    check(id, missing, param=f"messages.[{at}].tool_call_id")
    follows = at > 0 and (messages[at - 1].get("tool_calls") or messages[at - 1]["role"] == "tool")
    orphan = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    check(follows, orphan, param=f"messages.[{at}].role")
    unknown = f"Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message."
    check(id in waiting, unknown, param=f"messages.[{at}].tool_call_id")
    waiting.remove(id)


def check_answered(waiting, at):
    what = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    ids = ", ".join(map(str, waiting))
    what = f"{what} The following tool_call_ids did not have response messages: {ids}"
    check(not waiting, what, param=f"messages.[{at}].role")
