"""The room that listens: mitmproxy in reverse mode, in front of one server."""
