"""Rules of Gemini's generateContent for a history: order and number of calls and responses, roles, signatures."""

import signatures
from refusal import check

# Documented for calls that another model has made.
DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
DATA = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall",
    "toolResponse",
)
DOCUMENT = "https://ai.google.dev/gemini-api/docs/thought-signatures"


def is_second(model):
    """A model of the second generation; any other name is one of a later generation."""
    return "gemini-2" in model


def check_contents(contents, model):
    check(contents, "* GenerateContentRequest.contents: contents is not specified\n")
    for at, content in enumerate(contents):
        check(content.get("role") in (None, "user", "model", "function"), "Please use a valid role: user, model.")
        parts = content.get("parts")
        check(parts, f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.\n")
        for place, part in enumerate(parts):
            where = f"GenerateContentRequest.contents[{at}].parts[{place}].data"
            has_data = any(name in part for name in DATA)
            check(has_data, f"* {where}: required oneof field 'data' must have one initialized field\n")
            check_signature(part, "gemini" in model)
    turns = merge(contents)
    check_order(turns)
    if not is_second(model):
        check_signed(turns)


def merge(contents):
    """Contents of one role that follow each other are one turn."""
    turns = []
    for content in contents:
        role = "model" if content.get("role") == "model" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] = [*turns[-1]["parts"], *content["parts"]]
        else:
            turns.append({"role": role, "parts": content["parts"]})
    return turns


def of(turn, name):
    return [part[name] for part in turn["parts"] if name in part]


def check_order(turns):
    for at, turn in enumerate(turns):
        called, responses = of(turn, "functionCall"), of(turn, "functionResponse")
        after = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
        check(not called or turn["role"] == "model" and at > 0, after)
        before = turns[at - 1] if at else {"role": "user", "parts": []}
        after = "Please ensure that function response turn comes immediately after a function call turn."
        check(not responses or of(before, "functionCall") and turn["role"] == "user", after)
        following = of(turns[at + 1], "functionResponse") if at + 1 < len(turns) else []
        same = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
        check(not called or len(called) == len(following), same)
        check_names(called, following)


def check_names(called, responses):
    """Each response names a call of the turn before, by its id if it has one."""
    names = sorted(call.get("name", "") for call in called)
    given = sorted(response.get("name", "") for response in responses)
    check(not called or names == given, f"function responses {given} are not those of the calls {names}")
    ids = {call["id"] for call in called if call.get("id")}
    foreign = next((it["id"] for it in responses if it.get("id") and ids and it["id"] not in ids), None)
    check(foreign is None, f"function response {foreign} is of no call of the turn before")


def check_signature(part, is_on_its_part):
    """The provider's own, and for a model with Gemini's name on the part that it was made for."""
    signature = part.get("thoughtSignature")
    if signature is None or signature in DUMMIES or signature in map(encoded, DUMMIES):
        return
    origin = signatures.read("gemini", "", signature)
    is_own = origin is not None and (origin["part"] == part_of(part) or not is_on_its_part)
    check(is_own, "Corrupted thought signature.")


def part_of(part):
    """What a signature tells of the part that it is made for."""
    call = part.get("functionCall")
    return f"call of {call.get('name')}" if call else "text"


def encoded(text):
    """A client that takes a signature for bytes sends the text so."""
    return signatures.base64.b64encode(text.encode()).decode()


def check_signed(turns):
    """The first call of each step since the last turn with words of the user."""
    start = max((at for at, turn in enumerate(turns) if turn["role"] == "user" and not of(turn, "functionResponse")), default=0)
    for at, turn in enumerate(turns):
        call = next((part for part in turn["parts"] if "functionCall" in part), None)
        if call is None or at < start:
            continue
        missing = "This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance."
        which = f"Additional data, function call `default_api:{call['functionCall'].get('name')}` , position {at + 1}."
        what = "Function call is missing a thought_signature in functionCall parts."
        has_signature = call.get("thoughtSignature") is not None
        check(has_signature, f"{what} {missing} {which} Please refer to {DOCUMENT} for more details.")
