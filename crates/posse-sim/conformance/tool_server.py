# A tool server with one tool. When the agent has read the tools, it creates the file named in its argument.
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        # Codex asks only for tools that may do harm.
        hints = {"destructiveHint": True, "readOnlyHint": False, "openWorldHint": True}
        result = {"tools": [{"name": "note", "description": "Takes a note", "inputSchema": schema, "annotations": hints}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "noted"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if method == "tools/list":
        open(sys.argv[1], "w").close()
