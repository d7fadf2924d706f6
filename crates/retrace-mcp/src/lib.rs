//! An environment over an MCP server.
