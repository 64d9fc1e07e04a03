"""Rules for the tools of both of OpenAI's APIs: number, names, schemas, and the choice among them."""

import re

from refusal import check

MOST_TOOLS = 128
NAME = re.compile(r"[a-zA-Z0-9_-]+")
LONGEST_NAME = 64
COMPOSED = ("oneOf", "anyOf", "allOf", "enum", "not")


def check_length(text, longest, param):
    what = f"Expected a string with maximum length {longest}, but got a string with length {len(text)} instead."
    check(len(text) <= longest, f"Invalid '{param}': string too long. {what}", param=param, code="string_above_max_length")


def check_name(name, param):
    check(isinstance(name, str), f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")
    check_length(name, LONGEST_NAME, param)
    what = f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
    check(NAME.fullmatch(name), what, param=param, code="invalid_value")


def check_tools(tools, functions):
    """`functions` are those among the tools, each with the parameter under which it stands."""
    if tools is None:
        return
    what = f"Expected an array with maximum length {MOST_TOOLS}, but got an array with length {len(tools)} instead."
    check(len(tools) <= MOST_TOOLS, f"Invalid 'tools': array too long. {what}", param="tools", code="array_above_max_length")
    names = [function.get("name") for _, function in functions]
    for param, function in functions:
        check_name(function.get("name"), f"{param}.name")
        if function.get("parameters") is not None:
            check_schema(function, function["parameters"], f"{param}.parameters")
    twice = next((name for name in names if names.count(name) > 1), None)
    check(twice is None, f"Tool names must be unique: '{twice}'.", param="tools", code="invalid_value")


def check_schema(function, schema, param):
    fields = {"param": param, "code": "invalid_function_parameters"}
    invalid = f"Invalid schema for function '{function['name']}':"
    kind = schema.get("type") if isinstance(schema, dict) else schema
    composed = f"{invalid} schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    check(not isinstance(schema, dict) or not any(word in schema for word in COMPOSED), composed, **fields)
    check(kind == "object", f"{invalid} schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.", **fields)
    check_parts(schema, (), invalid, bool(function.get("strict")), fields)


def check_parts(schema, context, invalid, is_strict, fields):
    """Every array tells its items; a strict object closes itself and requires all that it has."""
    if not isinstance(schema, dict):
        return
    here = f"{invalid} In context={context!r},"
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    check("array" not in kinds or "items" in schema, f"{here} array schema missing items.", **fields)
    properties = schema.get("properties") or {}
    if is_strict and "object" in kinds:
        what = f"{here} 'additionalProperties' is required to be supplied and to be false."
        check(schema.get("additionalProperties") is False, what, **fields)
        absent = next((name for name in properties if name not in (schema.get("required") or [])), None)
        what = f"{here} 'required' is required to be supplied and to be an array including every key in properties. Missing '{absent}'."
        check(absent is None, what, **fields)
    for name, part in properties.items():
        check_parts(part, (*context, "properties", name), invalid, is_strict, fields)
    check_parts(schema.get("items"), (*context, "items"), invalid, is_strict, fields)


def check_choice(body, wanted, offered):
    """`wanted` are the names that the choice demands or allows."""
    what = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
    check(body.get("tool_choice") is None or body.get("tools"), what, param="tool_choice")
    absent = next((name for name in wanted if name not in offered), None)
    check(absent is None, f"Tool choice '{absent}' not found in 'tools' parameter.", param="tool_choice")


def names_in_choice(choice):
    """Names of functions that a choice demands or allows, in the form of either API."""
    if not isinstance(choice, dict):
        return []
    if choice.get("type") == "allowed_tools":
        listed = (choice.get("allowed_tools") or choice).get("tools") or []
        return [name for tool in listed for name in names_in_choice(tool)]
    return [(choice.get("function") or choice).get("name")] if choice.get("type") == "function" else []
