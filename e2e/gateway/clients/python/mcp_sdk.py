"""The MCP client. A task is {"mode", "list": true} or {"mode", "call", "arguments"}; the mode is `auto` for the newest
protocol that the server speaks, `legacy` for the handshake of the earlier ones."""

import anyio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

import tasks


async def ask(task):
    headers = {"authorization": f"Bearer {tasks.TOKEN}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{tasks.URL}/mcp", http_client=http)
        async with Client(transport, mode=task.get("mode", "auto")) as client:
            if task.get("list"):
                tools = [tool.model_dump(mode="json", by_alias=True) for tool in (await client.list_tools()).tools]
                return {"tools": tools, "protocol": client.protocol_version}
            result = await client.call_tool(task["call"], task.get("arguments") or {})
            text = "\n".join(block.text for block in result.content if block.type == "text")
            return {"text": text, "isError": result.is_error, "structured": result.structured_content}


def unwrapped(error):
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def converse(task):
    try:
        return anyio.run(ask, task)
    except BaseExceptionGroup as group:
        raise unwrapped(group) from group


tasks.run(converse)
