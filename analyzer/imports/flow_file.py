"""mitmproxy's flow files.

It reads none itself: mitmproxy is known in the proxy's room only, which lends a reader.
"""

from __future__ import annotations

from analyzer.imports import Read, Source


class FlowFile:
    """Flow files, as mitmproxy and mitmdump write them (`-w FILE`)."""

    name = "mitmproxy"

    def read(self, source: Source) -> Read:
        """Every flow of the file."""
        return source.read_flows(source.path)


IMPORT = FlowFile()
