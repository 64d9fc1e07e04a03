"""The rules of Anthropic's messages for turns, tools and threads, each with a request that passes and one that does not."""

from tests.ruling import SCHEMA, Ruling

from anthropic_messages import Messages
from anthropic_rules import THREADS

USER = {"role": "user", "content": "call look-up {}; then say done"}
TOOL = {"name": "look-up", "input_schema": SCHEMA}
CALL = {"type": "tool_use", "id": "t1", "name": "look-up", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
MARK = {"cache_control": {"type": "ephemeral"}}


def text(words, **fields):
    return {"type": "text", "text": words, **fields}


def model(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def body(*messages, **fields):
    return {"model": "m", "max_tokens": 4096, "messages": list(messages), "tools": [TOOL], **fields}


class MessagesRules(Ruling):
    dialect_class = Messages

    def test_a_conversation_of_two_turns_passes_and_recalls_every_result(self):
        first = self.passes(body(USER))
        result = {**RESULT, "tool_use_id": first["content"][0]["id"]}
        second = self.passes(body(USER, model(*first["content"]), user(result)))
        self.assertEqual(second["content"], [text("done\nRESULT sunny")])
        messages = [USER, model(*first["content"]), user(result), model(*second["content"]), user(text("recall"))]
        self.assertEqual(self.passes(body(*messages))["content"], [text("RECALL look-up=sunny")])

    def test_every_call_is_answered_in_the_next_message(self):
        self.passes(body(USER, model(CALL), user(RESULT)))
        message = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1."
        error = self.refused(body(USER, model(CALL), user(text("say x"))), message)
        self.assertEqual((error["type"], error["error"]["type"]), ("error", "invalid_request_error"))
        self.refused(body(USER, model(CALL, {**CALL, "id": "t2"}), user(RESULT)), "immediately after: t2.")

    def test_results_come_first_in_their_message(self):
        self.passes(body(USER, model(CALL), user(RESULT, text("say x"))))
        self.refused(body(USER, model(CALL), user(text("say x"), RESULT)), "without `tool_result` blocks immediately after")

    def test_a_result_is_of_a_call_of_the_message_before(self):
        self.refused(body(user(RESULT)), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1.")
        late = [USER, model(CALL), user(RESULT), model(text("x")), user(RESULT)]
        self.refused(body(*late), "messages.4.content.0: unexpected `tool_use_id`")

    def test_a_call_has_one_result(self):
        self.refused(body(USER, model(CALL), user(RESULT, RESULT)), "each tool_use must have a single result")

    def test_ids_of_calls_are_unique_and_legal(self):
        again = [USER, model(CALL), user(RESULT), model(CALL), user(RESULT)]
        self.refused(body(*again), "messages.3.content.0: `tool_use` ids must be unique")
        dotted = {**CALL, "id": "t.1"}
        self.refused(body(USER, model(dotted), user({**RESULT, "tool_use_id": "t.1"})), "should match pattern '^[a-zA-Z0-9_-]+$'")

    def test_no_text_stands_after_a_call(self):
        self.refused(body(USER, model(CALL, text("x")), user(RESULT)), "text stands after `tool_use`")

    def test_blocks_are_of_their_role(self):
        self.refused(body(user(CALL)), "`tool_use` blocks can only be in `assistant` messages")
        self.refused(body(USER, model(RESULT), USER), "`tool_result` blocks can only be in `user` messages")

    def test_roles_are_two_and_the_user_begins(self):
        self.passes(body(USER, USER))
        self.refused(body({"role": "system", "content": "x"}), "Unexpected role \"system\"")
        self.refused(body(model(text("x")), USER), "first message must use the \"user\" role")
        self.refused(body(), "at least one message is required")

    def test_the_user_has_the_last_word(self):
        self.refused(body(USER, model(text("x"))), "The conversation must end with a user message.")

    def test_texts_are_not_empty(self):
        self.refused(body(USER, model(text("")), USER), "messages: text content blocks must be non-empty")
        self.refused(body(user(text("\n"))), "text content blocks must contain non-whitespace text")
        self.refused(body(user()), "messages.0: all messages must have non-empty content")

    def test_blocks_have_known_types_and_fields(self):
        unknown = {"type": "mcp_tool_use", "id": "m1", "name": "x", "server_name": "s", "input": {}}
        self.refused(body(USER, model(unknown), USER), "Input tag 'mcp_tool_use' found using 'type'")
        self.refused(body(user(text("say x", parsed_output=None))), "messages.0.content.0.text.parsed_output: Extra inputs are not permitted")

    def test_the_request_has_known_fields_and_a_limit(self):
        self.refused(body(USER, response_format={}), "response_format: Extra inputs are not permitted")
        self.refused({"messages": [USER]}, "max_tokens: Field required")

    def test_there_are_four_cache_marks_at_most(self):
        system = [text("be brief", **MARK)]
        marked = user(text("say x", **MARK), text("y", **MARK))
        self.passes(body(marked, system=system, tools=[{**TOOL, **MARK}]))
        tools = [{**TOOL, **MARK}, {**TOOL, "name": "other", **MARK}]
        self.refused(body(marked, system=system, tools=tools), "A maximum of 4 blocks with cache_control may be provided. Found 5.")

    def test_an_empty_text_has_no_cache_mark(self):
        self.refused(body(user(text("", **MARK))), "cache_control cannot be set for empty text blocks")
        self.refused(body(USER, system=[text("", **MARK)]), "cache_control cannot be set for empty text blocks")

    def test_names_of_tools_are_legal_and_unique(self):
        self.passes(body(USER, tools=[{**TOOL, "name": "x" * 128}]))
        self.refused(body(USER, tools=[{**TOOL, "name": "a.b"}]), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
        self.refused(body(USER, tools=[{**TOOL, "name": "x" * 129}]), "String should have at most 128 characters")
        self.refused(body(USER, tools=[TOOL, TOOL]), "tools: Tool names must be unique.")

    def test_a_schema_is_an_object_without_choices_at_the_top(self):
        self.refused(body(USER, tools=[{**TOOL, "input_schema": {}}]), "tools.0.custom.input_schema.type: Field required")
        self.refused(body(USER, tools=[{**TOOL, "input_schema": {"type": "array"}}]), "Input should be 'object'")
        composed = {"type": "object", "anyOf": []}
        self.refused(body(USER, tools=[{**TOOL, "input_schema": composed}]), "does not support oneOf, allOf, or anyOf at the top level")

    def test_a_choice_names_a_tool_that_is_there(self):
        self.passes(body(USER, tool_choice={"type": "tool", "name": "look-up"}))
        self.refused(body(USER, tool_choice={"type": "tool", "name": "other"}), "Tool 'other' not found in provided tools")
        self.refused(body(USER, tools=[], tool_choice={"type": "any"}), "may only be specified while providing `tools`")


class Threads(Ruling):
    dialect_class = Messages

    def create(self):
        first = self.passes(body(USER, thread={"type": "create"}), [THREADS])
        result = user({**RESULT, "tool_use_id": first["content"][0]["id"]})
        following = {"model": "m", "max_tokens": 4096, "messages": [result]}
        return {**following, "thread": {"type": "continue", "previous_message_id": first["id"]}}

    def test_a_thread_continues_from_its_last_answer(self):
        second = self.passes(self.create(), [THREADS])
        self.assertEqual(second["content"], [text("done\nRESULT sunny")])

    def test_a_thread_needs_its_beta(self):
        self.refused(body(USER, thread={"type": "create"}), "thread: Extra inputs are not permitted")

    def test_a_thread_keeps_its_tools(self):
        self.refused({**self.create(), "tools": [TOOL]}, "tools may not be given", [THREADS])

    def test_a_thread_is_known_and_continues_once(self):
        unknown = {**self.create(), "thread": {"type": "continue", "previous_message_id": "msg_no"}}
        self.refused(unknown, "no thread holds", [THREADS], 404, details={"error_code": "thread_not_found"})
        following = self.create()
        self.passes(following, [THREADS])
        self.refused(following, "continued already", [THREADS], 409, details={"error_code": "thread_already_continued"})
