"""Asks a server by the Python SDK: client.py URL MODE [TOOL ARGUMENTS]...

MODE: "legacy", "auto", or a revision. Prints the revision, the names of the tools, and the result of each call."""

import asyncio
import json
import sys

from mcp.client.client import Client


async def main(url, mode, *calls):
    async with Client(url, mode=mode) as client:
        tools = (await client.list_tools()).tools
        answers = []
        for name, arguments in zip(calls[::2], calls[1::2]):
            result = await client.call_tool(name, json.loads(arguments))
            answers.append({"isError": result.is_error, "text": result.content[0].text, "structured": result.structured_content})
        print(json.dumps({"revision": client.protocol_version, "tools": [t.name for t in tools], "answers": answers}))


asyncio.run(main(*sys.argv[1:]))
