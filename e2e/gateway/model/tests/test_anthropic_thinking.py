"""The rules of Anthropic's messages for thinking, each with a request that passes and one that does not."""

from tests.ruling import Ruling
from tests.test_anthropic_messages import CALL, RESULT, USER, body, model, text, user

from anthropic_messages import Messages
from anthropic_thinking_rules import INTERLEAVED

MANUAL = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
ADAPTIVE = {"thinking": {"type": "adaptive"}}


class ThinkingRules(Ruling):
    dialect_class = Messages

    def first(self, **fields):
        """A turn of the model that thinks and calls, and the message that answers the call."""
        content = self.passes(body(USER, **fields))["content"]
        return content, user({**RESULT, "tool_use_id": content[-1]["id"]})

    def test_a_turn_with_thinking_passes_as_it_came(self):
        content, answer = self.first(**MANUAL)
        self.assertEqual([block["type"] for block in content], ["thinking", "tool_use"])
        self.assertEqual(self.passes(body(USER, model(*content), answer, **MANUAL))["content"][0]["type"], "text")
        content, answer = self.first(**ADAPTIVE)
        second = self.passes(body(USER, model(*content), answer, **ADAPTIVE))["content"]
        self.assertEqual([block["type"] for block in second], ["thinking", "text"])
        self.passes(body(USER, model(*content), answer, model(*second), user(text("say bye")), **ADAPTIVE))

    def test_signatures_are_the_providers_own(self):
        (thinking, call), answer = self.first(**MANUAL)
        message = "messages.1.content.0: Invalid `signature` in `thinking` block"
        for change in ({"signature": "seal"}, {"signature": ""}, {"thinking": "other words"}, {"thinking": ""}):
            self.refused(body(USER, model({**thinking, **change}, call), answer, **MANUAL), message)
        old = [USER, model({**thinking, "signature": "x"}, text("x")), USER, model(text("y")), USER]
        self.refused(body(*old), message)

    def test_redacted_data_is_the_providers_own(self):
        foreign = {"type": "redacted_thinking", "data": "seal"}
        self.refused(body(USER, model(foreign, text("x")), USER), "Invalid `data` in `redacted_thinking` block")

    def test_no_two_thinking_blocks_are_neighbors(self):
        (one, call), answer = self.first(**ADAPTIVE)
        other, words = self.passes(body(USER, model(one, call), answer, **ADAPTIVE))["content"]
        message = "messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
        self.refused(body(USER, model(one, other, words), USER, **ADAPTIVE), message)
        self.refused(body(USER, model(one, other, words), USER, model(text("x")), USER, **ADAPTIVE), message)
        self.passes(body(USER, model(one, words), USER, **ADAPTIVE))

    def test_the_latest_turn_has_all_thinking_of_its_answer(self):
        content, answer = self.first(**{"model": "redacted"}, **MANUAL)
        self.assertEqual([block["type"] for block in content], ["thinking", "redacted_thinking", "tool_use"])
        fields = {"model": "redacted", **MANUAL}
        self.passes(body(USER, model(*content), answer, **fields))
        self.refused(body(USER, model(content[0], content[2]), answer, **fields), "cannot be modified")
        self.refused(body(USER, model(content[1], content[0], content[2]), answer, **fields), "cannot be modified")

    def test_an_open_loop_starts_with_thinking_if_it_is_manual(self):
        message = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
        self.refused(body(USER, model(CALL), user(RESULT), **MANUAL), message)
        self.refused(body(USER, model(text("x"), CALL), user(RESULT), **MANUAL), "but found `text`")
        self.passes(body(USER, model(CALL), user(RESULT), **ADAPTIVE))
        self.passes(body(USER, model(CALL), user(RESULT), model(text("x")), USER, **MANUAL))

    def test_a_loop_of_two_rounds_starts_with_thinking_once(self):
        content, answer = self.first(**MANUAL)
        again = {**CALL, "id": "t2"}
        messages = [USER, model(*content), answer, model(again), user({**RESULT, "tool_use_id": "t2"})]
        self.passes(body(*messages, **MANUAL))

    def test_no_prefilled_turn_has_thinking_where_it_is_off(self):
        content, _ = self.first(**MANUAL)
        message = "When thinking is disabled, an `assistant` message in the final position"
        self.refused({**body(USER, model(content[0])), "model": "claude-3-7"}, message)

    def test_thinking_forces_no_tool_if_it_is_manual(self):
        forced = {"tool_choice": {"type": "any"}}
        self.passes(body(USER, **ADAPTIVE, **forced))
        self.refused(body(USER, **MANUAL, **forced), "Thinking may not be enabled when tool_choice forces tool use.")

    def test_the_budget_is_below_the_limit(self):
        self.refused(body(USER, thinking={"type": "enabled", "budget_tokens": 1000}), "greater than or equal to 1024")
        large = {"thinking": {"type": "enabled", "budget_tokens": 5000}}
        self.refused(body(USER, **large), "`max_tokens` must be greater than `thinking.budget_tokens`")
        self.passes(body(USER, **large), [INTERLEAVED])
