"""The rules of OpenAI's responses, each with a request that passes and one that does not."""

from tests.ruling import SCHEMA, Ruling

from openai_responses import Responses

USER = {"role": "user", "content": "call look-up {}; then say done"}
TOOL = {"type": "function", "name": "look-up", "parameters": SCHEMA}
CALL = {"type": "function_call", "call_id": "c1", "name": "look-up", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
THINKS = {"reasoning": {"effort": "low"}}
CARRIED = {**THINKS, "store": False, "include": ["reasoning.encrypted_content"]}


def body(*items, **fields):
    return {"model": "m", "input": list(items), "tools": [TOOL], **fields}


def output_of(response):
    return {**OUTPUT, "call_id": response["output"][-1]["call_id"]}


class ResponsesRules(Ruling):
    dialect_class = Responses

    def test_items_carried_by_the_client_pass_and_recall_every_result(self):
        first = self.passes(body(USER, **CARRIED))
        second = self.passes(body(USER, *first["output"], output_of(first), **CARRIED))
        self.assertEqual(second["output"][-1]["content"][0]["text"], "done\nRESULT sunny")
        items = [USER, *first["output"], output_of(first), *second["output"]]
        third = self.passes(body(*items, {"role": "user", "content": "recall"}, **CARRIED))
        self.assertEqual(third["output"][-1]["content"][0]["text"], "RECALL look-up=sunny")

    def test_a_chain_of_responses_keeps_its_items(self):
        first = self.passes(body(USER, **THINKS))
        second = self.passes(body(output_of(first), previous_response_id=first["id"], **THINKS))
        third = self.passes(body({"role": "user", "content": "recall"}, previous_response_id=second["id"], **THINKS))
        self.assertEqual(third["output"][-1]["content"][0]["text"], "RECALL look-up=sunny")

    def test_every_call_has_its_output_in_the_items(self):
        self.passes(body(USER, CALL, OUTPUT))
        error = self.refused(body(USER, CALL, USER), "No tool output found for function call c1.", param="input")
        self.assertEqual(error["error"]["type"], "invalid_request_error")

    def test_every_call_has_its_output_in_a_chain(self):
        first = self.passes(body(USER))
        self.refused(body(USER, previous_response_id=first["id"]), "No tool output found for function call")

    def test_every_call_has_its_output_in_a_conversation(self):
        conversation = self.dialect.store.create_conversation(1)["id"]
        first = self.passes(body(USER, conversation=conversation))
        self.refused(body(USER, conversation=conversation), "No tool output found for function call")
        self.passes(body(output_of(first), conversation={"id": conversation}))

    def test_every_output_has_its_call_before_it(self):
        self.refused(body(USER, OUTPUT), "No tool call found for function call output with call_id c1.", param="input")
        self.refused(body(USER, OUTPUT, CALL), "No tool call found")

    def test_reasoning_is_followed_by_its_item(self):
        first = self.passes(body(USER, **CARRIED))
        reasoning, call = first["output"]
        lonely = f"Item '{reasoning['id']}' of type 'reasoning' was provided without its required following item."
        self.refused(body(USER, reasoning, USER, **CARRIED), lonely, param="input")
        self.refused(body(USER, reasoning, **CARRIED), lonely)
        second = self.passes(body(USER, reasoning, call, output_of(first), **CARRIED))
        self.refused(body(USER, reasoning, *second["output"], **CARRIED), lonely)
        self.refused(body(USER, reasoning, second["output"][1], **CARRIED), lonely)

    def test_an_item_has_its_reasoning_before_it(self):
        first = self.passes(body(USER, **THINKS))
        reasoning, call = first["output"]
        message = f"Item '{call['id']}' of type 'function_call' was provided without its required 'reasoning' item: '{reasoning['id']}'."
        self.refused(body(USER, call, output_of(first), **THINKS), message, param="input")
        bare = {name: value for name, value in call.items() if name != "id"}
        self.passes(body(USER, bare, output_of(first), **THINKS))

    def test_encrypted_content_is_the_providers_own(self):
        reasoning, call = self.passes(body(USER, **CARRIED))["output"]
        for encrypted in ("gAAAAforeign", "seal.v1.abc", reasoning["encrypted_content"][:-4]):
            changed = {**reasoning, "encrypted_content": encrypted}
            self.refused(body(USER, changed, call, **CARRIED), "could not be verified", code="invalid_encrypted_content")

    def test_bare_reasoning_is_known_only_where_it_is_stored(self):
        first = self.passes(body(USER, **THINKS))
        bare = {"type": "reasoning", "id": first["output"][0]["id"], "summary": []}
        self.passes(body(USER, bare, first["output"][1], output_of(first), **THINKS))
        lost = self.passes(body(USER, **THINKS, store=False))
        message = "Items are not persisted when `store` is set to false."
        self.refused(body(USER, *lost["output"], output_of(lost), **THINKS, store=False), message, status=404, param="input")

    def test_references_are_to_stored_items(self):
        first = self.passes(body(USER))
        reference = {"type": "item_reference", "id": first["output"][0]["id"]}
        self.passes(body(USER, reference, output_of(first)))
        self.refused(body(USER, {**reference, "id": "fc_9"}), "Item with id 'fc_9' not found", status=404)

    def test_a_previous_response_is_stored(self):
        message = "Previous response with id 'resp_no' not found."
        fields = {"code": "previous_response_not_found", "param": "previous_response_id"}
        self.refused(body(USER, previous_response_id="resp_no"), message, **fields)
        lost = self.passes(body({"role": "user", "content": "say hi"}, store=False))
        self.refused(body(USER, previous_response_id=lost["id"]), "not found", **fields)

    def test_a_response_that_breaks_off_is_not_kept(self):
        request = self.request(body({"role": "user", "content": "say hi"}))
        request.is_kept = False
        broken = self.dialect.whole(request, self.dialect.read(request).answer(request.number))
        self.refused(body(USER, previous_response_id=broken["id"]), "not found", code="previous_response_not_found")

    def test_history_comes_from_one_place_that_is_there(self):
        both = {"previous_response_id": "resp_1", "conversation": "conv_1"}
        self.refused(body(USER, **both), "only providing one of", code="mutually_exclusive_parameters")
        self.refused(body(USER, conversation="conv_no"), "Conversation with id 'conv_no' not found.", status=404)

    def test_items_have_known_types_fields_and_roles(self):
        self.refused(body(USER, {"type": "mcp_call", "id": "mcp_1"}), "Invalid value: 'mcp_call'")
        extra = {**CALL, "parsed_arguments": None}
        self.refused(body(USER, extra, OUTPUT), "Unknown parameter: 'input[1].parsed_arguments'.", code="unknown_parameter")
        self.refused(body({"role": "tool", "content": "x"}), "Invalid value: 'tool'. Supported values are: 'assistant'")
        reasoning = {"type": "reasoning", "id": "rs_1"}
        self.refused(body(USER, reasoning), "Missing required parameter: 'input[1].summary'.")
        self.refused(body(USER, {**reasoning, "summary": [], "status": None}), "Unknown parameter: 'input[1].status'.")

    def test_ids_have_the_prefix_of_their_type_and_legal_letters(self):
        self.passes(body(USER, {**CALL, "id": "fc_x"}, OUTPUT))
        self.refused(body(USER, {**CALL, "id": "item_x"}, OUTPUT), "Expected an ID that begins with 'fc'")
        self.refused(body(USER, {**CALL, "id": ""}, OUTPUT), "contains letters, numbers, underscores, or dashes")

    def test_call_ids_have_64_letters_at_most(self):
        long = {"call_id": "c" * 64}
        self.passes(body(USER, {**CALL, **long}, {**OUTPUT, **long}))
        long = {"call_id": "c" * 65}
        self.refused(body(USER, {**CALL, **long}, {**OUTPUT, **long}), "maximum length 64", param="input[1].call_id")

    def test_no_item_comes_twice(self):
        call = {**CALL, "id": "fc_x"}
        self.refused(body(USER, call, OUTPUT, call), "Duplicate item found with id fc_x.")

    def test_tools_have_the_rules_of_chat(self):
        self.refused(body(USER, tools=[{**TOOL, "name": "a b"}]), "does not match pattern", param="tools[0].name")
        many = [{**TOOL, "name": f"t{n}"} for n in range(129)]
        self.refused(body(USER, tools=many), "maximum length 128")
        self.refused(body(USER, tools=[{**TOOL, "parameters": {}}]), "schema must be a JSON Schema", code="invalid_function_parameters")
        self.refused(body(USER, tool_choice={"type": "function", "name": "other"}), "Tool choice 'other' not found in 'tools' parameter.")

    def test_there_is_an_input(self):
        self.refused(body(), "Missing required parameter: 'input'.")

    def test_a_cut_answer_is_incomplete(self):
        answer = self.passes(body({"role": "user", "content": 'cut look-up {"city": "Bern"}'}))
        self.assertEqual((answer["status"], answer["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual((answer["output"][0]["status"], answer["output"][0]["arguments"]), ("incomplete", '{"city":'))
