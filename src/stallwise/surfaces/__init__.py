"""Where people and programs meet the answers: command line, local page, MCP server, notebook."""
