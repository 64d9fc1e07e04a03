"""The rules of OpenAI's chat completions, each with a request that passes and one that does not."""

from tests.ruling import SCHEMA, Ruling

from openai_chat import Chat

USER = {"role": "user", "content": "call look-up {}; then say done"}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


def tool(name="look-up", **function):
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **function}}


def called(*ids, name="look-up", **fields):
    calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **fields}


def body(*messages, **fields):
    return {"model": "m", "messages": list(messages), "tools": [tool()], **fields}


class ChatRules(Ruling):
    dialect_class = Chat

    def test_a_conversation_of_two_turns_passes_and_recalls_every_result(self):
        first = self.passes(body(USER))["choices"][0]["message"]
        id = first["tool_calls"][0]["id"]
        result = {"role": "tool", "tool_call_id": id, "content": "sunny"}
        second = self.passes(body(USER, first, result))["choices"][0]["message"]
        self.assertEqual(second["content"], "done\nRESULT sunny")
        again = self.passes(body(USER, first, result, second, {"role": "user", "content": "recall"}))
        self.assertEqual(again["choices"][0]["message"]["content"], "RECALL look-up=sunny")

    def test_every_call_is_answered_at_once(self):
        self.passes(body(USER, called("c1"), RESULT))
        message = "The following tool_call_ids did not have response messages: c1"
        error = self.refused(body(USER, called("c1"), USER), message, param="messages.[2].role")
        self.assertEqual(error["error"]["type"], "invalid_request_error")
        self.refused(body(USER, called("c1", "c2"), RESULT), "messages: c2")
        self.refused(body(USER, called("c1"), USER, RESULT), "did not have response messages")

    def test_a_tool_message_needs_a_call_before_it(self):
        self.refused(body(USER, RESULT), "must be a response to a preceeding message with 'tool_calls'", param="messages.[1].role")

    def test_a_tool_message_names_a_call_of_the_message_before(self):
        other = {**RESULT, "tool_call_id": "c9"}
        self.refused(body(USER, called("c1"), other), "'tool_call_id' of 'c9' not found in 'tool_calls' of previous message")
        self.refused(body(USER, called("c1"), RESULT, RESULT), "'tool_call_id' of 'c1' not found")

    def test_a_tool_message_has_the_id_of_its_call(self):
        self.refused(body(USER, called("c1"), {"role": "tool", "content": "x"}), "must have a 'tool_call_id'")

    def test_an_id_has_forty_letters_at_most(self):
        long = "c" * 40
        self.passes(body(USER, called(long), {**RESULT, "tool_call_id": long}))
        long = "c" * 41
        fields = {"param": "messages[1].tool_calls[0].id", "code": "string_above_max_length"}
        self.refused(body(USER, called(long), {**RESULT, "tool_call_id": long}), "maximum length 40, but got a string with length 41", **fields)

    def test_roles_are_known(self):
        self.passes(body({"role": "developer", "content": "be brief"}, USER))
        self.refused(body({"role": "model", "content": "x"}, USER), "Invalid value: 'model'. Supported values are")

    def test_there_are_messages(self):
        self.refused(body(), "Invalid 'messages': empty array", code="empty_array")

    def test_an_assistant_message_has_content_or_calls(self):
        self.passes(body(USER, {"role": "assistant", "content": ""}, USER))
        self.refused(body(USER, {"role": "assistant", "content": None}, USER), "expected a string, got null")
        self.refused(body(USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER), "tool_calls': empty array")

    def test_there_are_128_tools_at_most(self):
        self.passes(body(USER, tools=[tool(f"t{n}") for n in range(128)]))
        many = [tool(f"t{n}") for n in range(129)]
        self.refused(body(USER, tools=many), "maximum length 128, but got an array with length 129", code="array_above_max_length")

    def test_names_have_their_pattern_and_length(self):
        self.passes(body(USER, tools=[tool("a_B-9" + "x" * 59)]))
        self.refused(body(USER, tools=[tool("a.b")]), "does not match pattern", param="tools[0].function.name")
        self.refused(body(USER, tools=[tool("x" * 65)]), "maximum length 64")
        self.refused(body(USER, called("c1", name="a.b"), RESULT), "messages[1].tool_calls[0].function.name")

    def test_names_are_unique(self):
        self.refused(body(USER, tools=[tool(), tool()]), "must be unique")

    def test_a_schema_is_an_object_without_choices_at_the_top(self):
        self.passes(body(USER, tools=[tool(parameters={"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}})]))
        fields = {"code": "invalid_function_parameters", "param": "tools[0].function.parameters"}
        self.refused(body(USER, tools=[tool(parameters={"type": "string"})]), "got 'type: \"string\"'", **fields)
        self.refused(body(USER, tools=[tool(parameters={"type": "object", "anyOf": []})]), "not have 'oneOf'/'anyOf'", **fields)
        bare = {"type": "object", "properties": {"a": {"type": "array"}}}
        self.refused(body(USER, tools=[tool(parameters=bare)]), "array schema missing items", **fields)

    def test_a_strict_schema_closes_its_objects_and_requires_all(self):
        closed = {**SCHEMA, "additionalProperties": False, "required": ["city"]}
        self.passes(body(USER, tools=[tool(parameters=closed, strict=True)]))
        self.refused(body(USER, tools=[tool(strict=True)]), "'additionalProperties' is required to be supplied and to be false")
        open_one = {**SCHEMA, "additionalProperties": False}
        self.refused(body(USER, tools=[tool(parameters=open_one, strict=True)]), "Missing 'city'")

    def test_a_choice_needs_tools_and_names_one_of_them(self):
        chosen = {"type": "function", "function": {"name": "look-up"}}
        self.passes(body(USER, tool_choice=chosen))
        self.refused({"messages": [USER], "tool_choice": "auto"}, "only allowed when 'tools' are specified", param="tool_choice")
        other = {"type": "function", "function": {"name": "other"}}
        self.refused(body(USER, tool_choice=other), "Tool choice 'other' not found in 'tools'")
        among = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [other]}}
        self.refused(body(USER, tool_choice=among), "Tool choice 'other' not found in 'tools'")

    def test_no_call_comes_where_none_is_allowed_and_one_where_not_in_parallel(self):
        answer = self.passes(body(USER, tool_choice="none"))["choices"][0]
        self.assertEqual((answer["finish_reason"], answer["message"]["content"]), ("stop", "NOT ALLOWED look-up"))
        both = {"role": "user", "content": "say so and call look-up {} and call look-up {}; then say done"}
        one = self.passes(body(both, parallel_tool_calls=False))["choices"][0]["message"]
        self.assertEqual(len(one["tool_calls"]), 1)
        result = {"role": "tool", "tool_call_id": one["tool_calls"][0]["id"], "content": "x"}
        two = self.passes(body(both, one, result, parallel_tool_calls=False))["choices"][0]["message"]
        self.assertEqual(len(two["tool_calls"]), 1)

    def test_a_cut_call_ends_in_the_middle(self):
        cut = {"role": "user", "content": 'cut look-up {"city": "Bern"}'}
        answer = self.passes(body(cut))["choices"][0]
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(answer["message"]["tool_calls"][0]["function"]["arguments"], '{"city":')
