"""Rules of Gemini's generateContent for tools: names, schemas, and what does not go together with functions."""

import re

from gemini_rules import is_second
from refusal import check

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
MOST_FUNCTIONS = 512
BUILT_IN = ("googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps", "fileSearch", "computerUse")
# Of OpenAPI's schema, which `parameters` is; the others belong into `parametersJsonSchema`.
SCHEMA = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default",
    "items", "minimum", "maximum",
}


def declared(body):
    return [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]


def check_tools(body, model):
    for at, tool in enumerate(body.get("tools") or []):
        for place, function in enumerate(tool.get("functionDeclarations") or []):
            check_function(function, f"tools[{at}].function_declarations[{place}]")
    names = [function["name"] for function in declared(body)]
    twice = next((name for name in names if names.count(name) > 1), None)
    check(twice is None, f"Duplicate function declaration found: {twice}")
    what = f"tools[0].function_declarations: [FIELD_INVALID] At most {MOST_FUNCTIONS} function declarations can be specified."
    check(len(names) <= MOST_FUNCTIONS, f"The GenerateContentRequest proto is invalid:\n  * {what}")
    check_combinations(body, model, bool(names))
    check_choice(body, model, names)


def check_function(function, where):
    what = "Invalid function name. Must start with a letter or an underscore."
    what += " Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
    is_legal = isinstance(function.get("name"), str) and NAME.fullmatch(function["name"])
    check(is_legal, f"* GenerateContentRequest.{where}.name: {what}\n")
    both = f"* GenerateContentRequest.{where}: only one of parameters and parameters_json_schema may be set\n"
    check("parameters" not in function or "parametersJsonSchema" not in function, both)
    check_schema(function.get("parameters"), f"{where}.parameters")


def check_schema(schema, where):
    if not isinstance(schema, dict):
        return
    unknown = next((name for name in schema if name not in SCHEMA), None)
    what = f"Invalid JSON payload received. Unknown name \"{unknown}\" at '{where}': Cannot find field."
    check(unknown is None, what)
    kind = schema.get("type")
    listed = f"Invalid JSON payload received. Unknown name \"type\" at '{where}': Proto field is not repeating, cannot start list."
    check(not isinstance(kind, list), listed)
    kind = str(kind).upper()
    check(kind != "ARRAY" or "items" in schema, f"* GenerateContentRequest.{where}.items: missing field.\n")
    for place, (name, part) in enumerate((schema.get("properties") or {}).items()):
        check_schema(part, f"{where}.properties[{place}].value")
    check_schema(schema.get("items"), f"{where}.items")
    for place, part in enumerate(schema.get("anyOf") or []):
        check_schema(part, f"{where}.any_of[{place}]")


def check_combinations(body, model, has_functions):
    config = body.get("toolConfig") or {}
    has_built_in = any(name in tool for tool in body.get("tools") or [] for name in BUILT_IN)
    if has_functions and has_built_in:
        check(not is_second(model), "Tool use with function calling is unsupported")
        what = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
        check(config.get("includeServerSideToolInvocations"), what)
    kind = (body.get("generationConfig") or {}).get("responseMimeType")
    is_json = has_functions and kind == "application/json" and is_second(model)
    check(not is_json, f"Function calling with a response mime type: '{kind}' is unsupported")
    what = "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config."
    what += "\n\nProposed fix: move those values to CachedContent from GenerateContent request."
    is_alone = not any(body.get(name) for name in ("systemInstruction", "tools", "toolConfig"))
    check("cachedContent" not in body or is_alone, what)


def check_choice(body, model, names):
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig")
    if calling is None:
        return
    check(names or not is_second(model), "Function calling config is set without function_declarations.")
    allowed = calling.get("allowedFunctionNames")
    is_forced = calling.get("mode") in ("ANY", "VALIDATED")
    check(allowed is None or is_forced, "Please set allowed_function_names only when function calling mode is ANY.")
    absent = next((name for name in allowed or [] if name not in names), None)
    check(absent is None, f"allowed_function_names holds {absent}, which is not declared")
