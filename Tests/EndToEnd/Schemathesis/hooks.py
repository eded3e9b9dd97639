"""Tells schemathesis how to send the media types that it does not know, and HTTP/2 if FANFARE_HTTP2 is set."""

import os
import socket
import urllib.parse

import requests
import schemathesis
import urllib3


@schemathesis.serializer("application/x-ndjson")
def ndjson(ctx, value):
    """Sends a text as it is."""
    return value.encode(errors="surrogatepass") if isinstance(value, str) else str(value).encode()


class HTTP2Adapter(requests.adapters.BaseAdapter):
    """Sends each request over an HTTP/2 connection of its own, with prior knowledge."""

    def send(self, request, **options):
        url = urllib.parse.urlsplit(request.url)
        path = request.path_url
        body = request.body or b""
        body = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else b"".join(body)
        connection = h2.connection.H2Connection(
            h2.config.H2Configuration(header_encoding="utf-8", validate_outbound_headers=False))
        # They concern the connection, or have another place in HTTP/2.
        skipped = {"host", "connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection"}
        fields = [(":method", request.method), (":scheme", "http"), (":authority", url.netloc), (":path", path)]
        for name, value in request.headers.items():
            text = value.encode("latin-1", "replace") if isinstance(value, str) else value
            if name.lower() not in skipped:
                fields.append((name.lower(), text.strip()))
        response = requests.Response()
        response.request, response.url, response.connection = request, request.url, self
        with socket.create_connection((url.hostname, url.port), timeout=30) as stream:
            connection.initiate_connection()
            connection.send_headers(1, fields, end_stream=not body)
            parts, isEnded = [], False
            while not isEnded:
                while body and (size := min(connection.local_flow_control_window(1), 16384, len(body))) > 0:
                    connection.send_data(1, body[:size], end_stream=size == len(body))
                    body = body[size:]
                stream.sendall(connection.data_to_send())
                received = stream.recv(65536)
                for event in connection.receive_data(received):
                    if isinstance(event, h2.events.ResponseReceived):
                        (_, status), *answer = event.headers
                        response.status_code = int(status)
                        response.headers = requests.structures.CaseInsensitiveDict(answer)
                        response.raw = urllib3.HTTPResponse(
                            headers=urllib3.HTTPHeaderDict(answer), status=int(status), version=20)
                    elif isinstance(event, h2.events.DataReceived):
                        parts.append(event.data)
                        connection.acknowledge_received_data(event.flow_controlled_length, 1)
                    elif isinstance(event, h2.events.StreamReset) and response.status_code is None:
                        raise requests.exceptions.InvalidHeader(f"reset with {event.error_code}")
                    elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
                        isEnded = True
                    if isinstance(event, h2.events.StreamEnded):
                        isEnded = True
                if not received:
                    break
        if response.status_code is None:
            raise requests.exceptions.ConnectionError("closed without an answer", request=request)
        response._content_consumed = True
        response._content, response.encoding = b"".join(parts), "utf-8"
        return response

    def close(self):
        pass


if os.environ.get("FANFARE_HTTP2"):
    import h2.config
    import h2.connection
    import h2.events

    requests.Session.get_adapter = lambda self, url: HTTP2Adapter()
