"""The MCP server: the answers of the command line for coding agents, in pages that fit their context."""
