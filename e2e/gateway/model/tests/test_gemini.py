"""The rules of Gemini's generateContent, each with a request that passes and one that does not."""

from tests.ruling import SCHEMA, Ruling

from gemini import Gemini

ASK = {"role": "user", "parts": [{"text": "call look-up {}; then say done"}]}
SAY = {"role": "user", "parts": [{"text": "say hi"}]}
FUNCTION = {"name": "look-up", "parameters": SCHEMA}
SIGNED = {"functionCall": {"name": "look-up", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}
UNSIGNED = {"functionCall": {"name": "look-up", "args": {}}}
RESPONSE = {"functionResponse": {"name": "look-up", "response": {"result": "sunny"}}}
SEARCH = {"tools": [{"functionDeclarations": [FUNCTION]}, {"googleSearch": {}}]}
JSON = {"generationConfig": {"responseMimeType": "application/json"}}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def user(*parts):
    return {"role": "user", "parts": list(parts)}


def body(*contents, name="gemini-3-pro", **fields):
    return {"model": name, "contents": list(contents), "tools": [{"functionDeclarations": [FUNCTION]}], **fields}


def functions(*declared, **fields):
    return {"tools": [{"functionDeclarations": list(declared)}], **fields}


def calling(**config):
    return {"toolConfig": {"functionCallingConfig": config}}


class GeminiRules(Ruling):
    dialect_class = Gemini

    def parts(self, *contents, **fields):
        return self.passes(body(*contents, **fields))["candidates"][0]["content"]["parts"]

    def test_a_conversation_of_two_turns_passes_and_recalls_every_result(self):
        for name in ("gemini-3-pro", "gemini-2.5-flash", "anything"):
            first = self.parts(ASK, name=name)
            second = self.parts(ASK, model(*first), user(RESPONSE), name=name)
            self.assertEqual(second, [{"text": 'done\nRESULT {"result": "sunny"}'}])
            third = self.parts(ASK, model(*first), user(RESPONSE), model(*second), user({"text": "recall"}), name=name)
            self.assertEqual(third, [{"text": 'RECALL look-up={"result": "sunny"}'}])

    def test_names_are_read_in_either_case(self):
        snake = {"function_call": {"name": "look-up", "args": {"a_b": 1}}, "thought_signature": SIGNED["thoughtSignature"]}
        self.passes(body(ASK, model(snake), user({"function_response": RESPONSE["functionResponse"]})))

    def test_there_are_as_many_responses_as_calls(self):
        message = "the number of function response parts is equal to the number of function call parts"
        error = self.refused(body(ASK, model(SIGNED, UNSIGNED), user(RESPONSE)), message)
        self.assertEqual((error["error"]["code"], error["error"]["status"]), (400, "INVALID_ARGUMENT"))
        self.refused(body(ASK, model(SIGNED), SAY), message)
        self.refused(body(ASK, model(SIGNED)), message)

    def test_responses_come_at_once_after_calls(self):
        self.refused(body(ASK, user(RESPONSE)), "function response turn comes immediately after a function call turn")
        self.refused(body(ASK, model({"text": "x"}), user(RESPONSE)), "function response turn comes immediately after")

    def test_calls_come_after_a_turn_of_the_user(self):
        self.refused(body(model(SIGNED), user(RESPONSE)), "function call turn comes immediately after a user turn")
        self.refused(body(user(SIGNED), user(RESPONSE)), "function call turn comes immediately after a user turn")

    def test_responses_name_their_calls(self):
        other = {"functionResponse": {"name": "other", "response": {}}}
        self.refused(body(ASK, model(SIGNED), user(other)), "are not those of the calls")
        with_id = {"functionCall": {"name": "look-up", "args": {}, "id": "c1"}, "thoughtSignature": SIGNED["thoughtSignature"]}
        of = {"functionResponse": {**RESPONSE["functionResponse"], "id": "c2"}}
        self.refused(body(ASK, model(with_id), user(of)), "is of no call of the turn before")

    def test_the_first_call_of_each_step_is_signed(self):
        message = "Function call is missing a thought_signature in functionCall parts."
        self.refused(body(ASK, model(UNSIGNED), user(RESPONSE)), message)
        self.refused(body(ASK, model(UNSIGNED, SIGNED), user(RESPONSE, RESPONSE)), message)
        self.refused(body(ASK, model(SIGNED), user(RESPONSE), model(UNSIGNED), user(RESPONSE)), message)
        self.passes(body(ASK, model(SIGNED, UNSIGNED), user(RESPONSE, RESPONSE)))
        self.passes(body(ASK, model(UNSIGNED), user(RESPONSE), name="gemini-2.5-flash"))
        self.passes(body(ASK, model(UNSIGNED), user(RESPONSE), model({"text": "x"}), SAY))

    def test_signatures_are_the_providers_own_and_on_their_part(self):
        own = self.parts(ASK)[0]
        url = {**own, "thoughtSignature": own["thoughtSignature"].replace("+", "-").replace("/", "_").rstrip("=")}
        self.passes(body(ASK, model(url), user(RESPONSE)))
        for foreign in ({**own, "thoughtSignature": "c2VhbA=="}, {"text": "x", "thoughtSignature": own["thoughtSignature"]}):
            contents = [ASK, model(foreign), *([user(RESPONSE)] if "functionCall" in foreign else [SAY])]
            self.refused(body(*contents), "Corrupted thought signature.")
        moved = {**own, "functionCall": {"name": "other", "args": {}}}
        other = {"functionResponse": {"name": "other", "response": {}}}
        self.refused(body(ASK, model(moved), user(other)), "Corrupted thought signature.")

    def test_thoughts_come_with_a_signed_end(self):
        thinks = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
        parts = self.parts(SAY, **thinks)
        self.assertTrue(parts[0]["thought"])
        self.passes(body(SAY, model(*parts), SAY, **thinks))

    def test_roles_are_known_and_parts_there(self):
        self.refused(body({"role": "assistant", "parts": [{"text": "x"}]}), "Please use a valid role: user, model.")
        self.refused(body(SAY, model(), SAY), "contents[1].parts: contents.parts must not be empty.")
        self.refused(body(SAY, model({}), SAY), "contents[1].parts[0].data: required oneof field 'data'")
        self.refused(body(), "contents is not specified")

    def test_names_of_functions_are_legal_and_unique(self):
        self.passes(body(SAY, **functions({"name": "_a.b:c-9"})))
        for name in ("9a", "a b", "x" * 65):
            self.refused(body(SAY, **functions({"name": name})), "function_declarations[0].name: Invalid function name.")
        self.refused(body(SAY, **functions(FUNCTION, FUNCTION)), "Duplicate function declaration found: look-up")

    def test_there_are_512_functions_at_most(self):
        self.passes(body(SAY, **functions(*({"name": f"f{n}"} for n in range(512)))))
        self.refused(body(SAY, **functions(*({"name": f"f{n}"} for n in range(513)))), "At most 512 function declarations")

    def test_parameters_are_of_openapi(self):
        closed = {**SCHEMA, "additionalProperties": False}
        self.passes(body(SAY, **functions({"name": "f", "parametersJsonSchema": closed})))
        where = "at 'tools[0].function_declarations[0].parameters': Cannot find field."
        self.refused(body(SAY, **functions({"name": "f", "parameters": closed})), f"Unknown name \"additionalProperties\" {where}")
        bare = {"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}}
        self.refused(body(SAY, **functions({"name": "f", "parameters": bare})), "value.items: missing field.")
        listed = {"type": "OBJECT", "properties": {"a": {"type": ["string", "null"]}}}
        self.refused(body(SAY, **functions({"name": "f", "parameters": listed})), "Proto field is not repeating, cannot start list.")
        both = {"name": "f", "parameters": SCHEMA, "parametersJsonSchema": SCHEMA}
        self.refused(body(SAY, **functions(both)), "only one of parameters and parameters_json_schema")

    def test_functions_do_not_go_with_built_in_tools(self):
        self.passes(body(SAY, name="gemini-2.5-flash", tools=[{"googleSearch": {}}]))
        self.refused(body(SAY, name="gemini-2.5-flash", **SEARCH), "Tool use with function calling is unsupported")
        self.refused(body(SAY, **SEARCH), "Please enable tool_config.include_server_side_tool_invocations")
        self.passes(body(SAY, **SEARCH, toolConfig={"includeServerSideToolInvocations": True}))

    def test_functions_do_not_go_with_json_in_the_second_generation(self):
        self.passes(body(SAY, **JSON))
        self.passes(body(SAY, name="gemini-2.5-flash", tools=[], **JSON))
        self.refused(body(SAY, name="gemini-2.5-flash", **JSON), "a response mime type: 'application/json' is unsupported")

    def test_a_cache_excludes_tools(self):
        self.passes({"model": "gemini-3-pro", "contents": [SAY], "cachedContent": "cachedContents/1"})
        self.refused(body(SAY, cachedContent="cachedContents/1"), "CachedContent can not be used with GenerateContent request setting")

    def test_a_choice_is_of_declared_functions(self):
        self.passes(body(SAY, **calling(mode="ANY", allowedFunctionNames=["look-up"])))
        message = "Please set allowed_function_names only when function calling mode is ANY."
        self.refused(body(SAY, **calling(mode="AUTO", allowedFunctionNames=["look-up"])), message)
        self.refused(body(SAY, **calling(mode="ANY", allowedFunctionNames=["other"])), "holds other, which is not declared")
        bare = {"name": "gemini-2.5-flash", "tools": [{"googleSearch": {}}]}
        self.refused(body(SAY, **bare, **calling(mode="AUTO")), "Function calling config is set without function_declarations.")
