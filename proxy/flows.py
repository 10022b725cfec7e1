"""Reads the exchanges of a flow file that mitmproxy wrote.

It records nothing. A flow does not say when the first byte of a body came, and has no body where it was
streamed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mitmproxy.exceptions import FlowReadException
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from store.records import Ended, RequestSeen, ResponseSeen

type Found = tuple[RequestSeen, ResponseSeen | None] | str


def read_flows(path: Path) -> Iterator[tuple[str, Found]]:
    """Every flow of a file with its place in it; what cannot be read is a reason."""
    number = 0
    with path.open("rb") as file:
        flows = iter(FlowReader(file).stream())
        while True:
            number += 1
            where = f"flow {number}"
            try:
                flow = next(flows)
                found = _exchange(where, flow) if isinstance(flow, HTTPFlow) else None
            except StopIteration:
                return
            except FlowReadException as error:
                yield where, f"the file breaks off or is none of mitmproxy's: {error}"
                return
            except Exception as error:  # whatever a damaged flow makes mitmproxy raise
                yield where, f"the flow is damaged: {type(error).__name__}"
                flows = iter(FlowReader(file).stream())
                continue
            if found is not None:
                yield where, found


def _exchange(where: str, flow: HTTPFlow) -> tuple[RequestSeen, ResponseSeen | None]:
    request = flow.request
    path, _, query = request.path.partition("?")
    seen = RequestSeen(
        key=where,
        started_at_ns=round(request.timestamp_start * 1e6) * 1000,  # finer than that a float is not
        method=request.method,
        path=path,
        query=query,
        headers=tuple(request.headers.items(multi=True)),
        body=request.raw_content or b"",
    )
    return seen, _response(where, flow)


def _response(where: str, flow: HTTPFlow) -> ResponseSeen | None:
    response, error = flow.response, flow.error
    if response is None and error is None:
        return None
    ended: Ended = "complete" if error is None else "reset"
    until = response.timestamp_end if response else None
    return ResponseSeen(
        key=where,
        status=response.status_code if response else None,
        headers=tuple(response.headers.items(multi=True)) if response else (),
        body=(response.raw_content if response else None) or b"",
        chunks=(),
        ttft_ns=None,
        duration_ns=None if until is None else round((until - flow.request.timestamp_start) * 1e9),
        ended=ended,
        error=error.msg if error else None,
    )
