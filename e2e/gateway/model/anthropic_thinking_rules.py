"""Rules of Anthropic's messages for thinking: foreign signatures, neighbors, changes, and turns that do not start with it."""

import signatures
from refusal import check

LEAST_BUDGET = 1024
INTERLEAVED = "interleaved-thinking-2025-05-14"
KINDS = ("thinking", "redacted_thinking")


def mode(body):
    return (body.get("thinking") or {}).get("type") or "disabled"


def is_forced(body):
    return (body.get("tool_choice") or {}).get("type") in ("any", "tool")


def origin(block):
    """The answer and the place that a block was made for; None if the provider has not made it."""
    if block["type"] == "thinking":
        return signatures.read("thinking", block.get("thinking") or "", block.get("signature"))
    return signatures.read("redacted", "", block.get("data"))


def check_config(request):
    body = request.body
    if mode(body) != "enabled":
        return
    check(not is_forced(body), "Thinking may not be enabled when tool_choice forces tool use.")
    budget = body["thinking"].get("budget_tokens") or 0
    least = f"thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_BUDGET}"
    check(budget >= LEAST_BUDGET, least)
    is_less = budget < body["max_tokens"] or INTERLEAVED in request.betas
    check(is_less, "`max_tokens` must be greater than `thinking.budget_tokens`.")


def check_thinking(request, turns):
    """`turns` are the messages, with those of one role that follow each other as one."""
    check_config(request)
    of_model = [at for at, turn in enumerate(turns) if turn["role"] == "assistant"]
    for at in of_model:
        check_made(turns[at], at)
        check_neighbors(turns[at], at)
    if of_model:
        check_unchanged(turns[of_model[-1]], of_model[-1])
    if mode(request.body) == "enabled":
        check_start(turns)
    elif turns and turns[-1]["role"] == "assistant":
        place = next((place for place, block in enumerate(turns[-1]["content"]) if block["type"] in KINDS), None)
        what = "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`."
        where = f"messages.{len(turns) - 1}.content.{place}"
        check(place is None, f"{where}: {what} To use thinking blocks, enable `thinking` in your request.")
    what = "This model does not support assistant message prefill. The conversation must end with a user message."
    check(turns[-1]["role"] == "user" or "claude-3" in request.model, what)


def check_made(turn, at):
    for place, block in enumerate(turn["content"]):
        if block["type"] in KINDS:
            field = {"thinking": "signature", "redacted_thinking": "data"}[block["type"]]
            what = f"messages.{at}.content.{place}: Invalid `{field}` in `{block['type']}` block"
            check(origin(block) is not None, what)


def refuse_change(is_right, at, place):
    what = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    what = f"messages.{at}.content.{place}: {what} These blocks must remain as they were in the original response."
    check(is_right, what)


def check_neighbors(turn, at):
    """The provider makes no two thinking blocks in a row; a redacted one may stand beside another."""
    for place, (one, other) in enumerate(zip(turn["content"], turn["content"][1:])):
        refuse_change(not one["type"] == other["type"] == "thinking", at, place + 1)


def check_unchanged(turn, at):
    """Of each answer in the turn all its thinking is there, in its order."""
    made = [(place, origin(block)) for place, block in enumerate(turn["content"]) if block["type"] in KINDS]
    for place, block in made:
        of_same = [other["index"] for _, other in made if other["number"] == block["number"]]
        refuse_change(of_same == list(range(block["count"])), at, place)


def check_start(turns):
    """The turn that a loop of calls has begun starts with thinking, as long as the loop is open."""
    is_loop = bool(turns) and turns[-1]["role"] == "user" and turns[-1]["content"][0]["type"] == "tool_result"
    if not is_loop:
        return
    at = len(turns) - 1
    while at > 1 and turns[at]["content"][0]["type"] == "tool_result":
        at -= 2
    start = turns[at + 1]["content"][0]["type"] if at + 1 < len(turns) else "thinking"
    what = "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    what = f"Expected `thinking` or `redacted_thinking`, but found `{start}`. {what} To avoid this requirement, disable `thinking`."
    check(start in KINDS, f"messages.{at + 1}.content.0.type: {what}")
