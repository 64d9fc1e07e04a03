"""Rules of Anthropic's messages for tools and threads."""

import re

from refusal import Refused, check

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CREATE_ONLY = ("system", "tools")


def check_tools(body):
    tools = body.get("tools") or []
    for at, tool in enumerate(tools):
        if tool.get("type") in (None, "custom"):
            check_tool(tool, f"tools.{at}.custom")
    names = [tool.get("name") for tool in tools]
    check(len(set(names)) == len(names), "tools: Tool names must be unique.")
    choice = body.get("tool_choice") or {}
    what = f"tool_choice.{choice.get('type')}: `tool_choice` may only be specified while providing `tools`."
    check(tools or choice.get("type") in (None, "none"), what)
    name = choice.get("name")
    check(choice.get("type") != "tool" or name in names, f"Tool '{name}' not found in provided tools")


def check_tool(tool, where):
    name = tool.get("name") or ""
    check(len(name) <= 128, f"{where}.name: String should have at most 128 characters")
    check(NAME.fullmatch(name), f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool.get("input_schema")
    check(isinstance(schema, dict), f"{where}.input_schema: Field required")
    check("type" in schema, f"{where}.input_schema.type: Field required")
    check(schema["type"] == "object", f"{where}.input_schema.type: Input should be 'object'")
    composed = any(word in schema for word in ("oneOf", "allOf", "anyOf"))
    check(not composed, f"{where}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")


class Threads:
    """Conversations that the provider keeps under the id of their last answer."""

    def __init__(self):
        self.kept = {}

    def resolve(self, body):
        """The whole conversation of a request, with what its thread was created with."""
        thread = body.get("thread") or {}
        if thread.get("type") != "continue":
            return body
        repeated = [name for name in CREATE_ONLY if name in body]
        what = f"thread: {', '.join(repeated)} may not be given when a thread is continued"
        check(not repeated, what, details={"error_code": "thread_invalid_request"})
        id = thread.get("previous_message_id")
        found = self.kept.get(id)
        if found is None:
            raise Refused(f"thread.previous_message_id: no thread holds {id}", 404, details={"error_code": "thread_not_found"})
        is_last = not found["is_continued"]
        check(is_last, f"thread: {id} is continued already", 409, details={"error_code": "thread_already_continued"})
        return {**body, **found["created_with"], "messages": [*found["messages"], *body["messages"]]}

    def record(self, body, resolved, message):
        if not body.get("thread"):
            return
        previous = body["thread"].get("previous_message_id")
        if previous in self.kept:
            self.kept[previous]["is_continued"] = True
        created_with = {name: resolved[name] for name in CREATE_ONLY if name in resolved}
        answer = {"role": "assistant", "content": message["content"]}
        messages = [*resolved["messages"], answer]
        self.kept[message["id"]] = {"created_with": created_with, "messages": messages, "is_continued": False}
