"""A hostile HTTP/2 client, frame by frame (Python packages hyperframe and hpack, which come with h2).

peer.py PORT        carries out every case of CASES on a connection of its own and prints "name: what came of it"
peer.py PORT NAME   only that case; NAME may be one of OTHERS, which need a front end with special settings
"""
import base64
import collections
import json
import re
import signal
import socket
import sys

import hpack
from h2.errors import ErrorCodes
from hyperframe.frame import (
    DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, PriorityFrame, RstStreamFrame,
    SettingsFrame, WindowUpdateFrame)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SEND = json.dumps({"to": {"user": "bob"}, "message": {"body": "b"}}).encode()
ALICE = ("authorization", "Basic " + base64.b64encode(b"alice:alice").decode())
JSON = ("content-type", "application/json")


def head(method="POST", path="/api/sends", *others, length=None):
    fields = [(":method", method), (":scheme", "http"), (":authority", "x"), (":path", path), *others]
    return fields + ([("content-length", str(length))] if length is not None else [])


def post(*others, length=None):
    return head("POST", "/api/sends", ALICE, JSON, *others, length=length)


GET = head("GET", "/nothing")


class Peer:
    def __init__(self, port, settings=None, preface=PREFACE):
        # Only a defect lets the time run out.
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.received, self.events, self.bodies, self.ended = b"", [], {}, set()
        self.heads = {}
        # The bytes that may be sent, by stream; 0 is the connection.
        self.windows = collections.defaultdict(lambda: 65535)
        self.settings = {}
        self.raw(preface)
        if preface == PREFACE:
            self.send(SettingsFrame(0, settings=settings or {}))

    def raw(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # the server has closed; what it sent before can still be read

    def send(self, *frames):
        self.raw(b"".join(frame.serialize() for frame in frames))

    def block(self, fields):
        return self.encoder.encode([hpack.NeverIndexedHeaderTuple(name, value) for name, value in fields], huffman=False)

    def headers(self, stream, fields, end=False, **flags):
        frame = HeadersFrame(stream, self.block(fields) if not isinstance(fields, bytes) else fields)
        frame.flags.add("END_HEADERS")
        if end:
            frame.flags.add("END_STREAM")
        return frame

    def data(self, stream, data, end=True):
        frame = DataFrame(stream, data)
        if end:
            frame.flags.add("END_STREAM")
        return frame

    def request(self, stream, fields=None, body=SEND):
        """A whole request."""
        self.send(self.headers(stream, fields or post(length=len(body))), self.data(stream, body))

    def spend(self, stream, size):
        for key in (0, stream):
            self.windows[key] -= size

    def upload(self, stream, body):
        """Sends a body as the windows open, or until the stream ends."""
        while body and stream not in self.ended:
            size = min(len(body), 16384, self.windows[0], self.windows[stream])
            if size > 0:
                self.send(self.data(stream, body[:size], end=size == len(body)))
                self.spend(stream, size)
                body = body[size:]
            elif self.step() is None:
                return

    def frame(self):
        """The next frame, or None at the end of the connection."""
        while True:
            if len(self.received) >= 9:
                frame, length = Frame.parse_frame_header(memoryview(self.received[:9]))
                if len(self.received) >= 9 + length:
                    frame.parse_body(memoryview(self.received[9:9 + length]))
                    self.received = self.received[9 + length:]
                    return frame
            try:
                more = self.socket.recv(65536)
            except (ConnectionError, BrokenPipeError):
                return None
            if not more:
                return None
            self.received += more

    def step(self):
        """Reads a frame and notes what it says. Returns it, or None at the end."""
        frame = self.frame()
        if frame is None:
            self.events.append("closed")
        elif isinstance(frame, HeadersFrame):
            (_, status), *fields = self.decoder.decode(frame.data)
            self.events.append(f"{frame.stream_id} {status}")
            self.heads[frame.stream_id] = status, fields
        elif isinstance(frame, DataFrame):
            self.bodies[frame.stream_id] = self.bodies.get(frame.stream_id, b"") + frame.data
        elif isinstance(frame, RstStreamFrame):
            self.events.append(f"{frame.stream_id} {ErrorCodes(frame.error_code).name}")
        elif isinstance(frame, GoAwayFrame):
            self.events.append(f"goaway {ErrorCodes(frame.error_code).name}")
        elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self.settings.update(frame.settings)
            self.send(SettingsFrame(0, flags=["ACK"]))
        if isinstance(frame, WindowUpdateFrame):
            self.windows[frame.stream_id] += frame.window_increment
        if frame is not None and ("END_STREAM" in frame.flags or isinstance(frame, RstStreamFrame)):
            self.ended.add(frame.stream_id)
        return frame

    def until(self, condition):
        """Reads until a frame meets the condition, or to the end."""
        while True:
            frame = self.step()
            if frame is None or condition(frame):
                return frame

    def answer(self, stream):
        """Reads up to the end of a stream, or to the end of the connection."""
        while stream not in self.ended and self.step() is not None:
            pass

    def ping(self):
        """Reads up to the answer to a PING, so everything that the frames before it led to at once."""
        self.send(PingFrame(0, opaque_data=b"outcome."))
        self.until(lambda frame: isinstance(frame, PingFrame) and frame.opaque_data == b"outcome.")

    def greet(self):
        """Reads up to the acknowledgement of the settings; limits of the server are in force from then on."""
        self.until(lambda frame: isinstance(frame, SettingsFrame) and "ACK" in frame.flags)

    def outcome(self):
        self.ping()
        return ", ".join(self.events)

    def end(self):
        """Reads to the end of the connection."""
        self.until(lambda frame: False)
        return ", ".join(self.events)


class Raw(Frame):
    """A frame of any type with any bytes."""

    def __init__(self, type, stream, body=b"", flags=0, length=None):
        self.bytes = (len(body) if length is None else length).to_bytes(3, "big") + bytes([type, flags])
        self.bytes += stream.to_bytes(4, "big") + body

    def serialize(self):
        return self.bytes


CASES, OTHERS = {}, {}


def case(function):
    CASES[function.__name__] = function
    return function


def other(function):
    OTHERS[function.__name__] = function
    return function


def frames(name, build, streams=()):
    """A case that sends frames and reports what they lead to. `streams` are those that end."""
    def run(port):
        peer = Peer(port)
        peer.greet()
        peer.send(*build(peer))
        for stream in streams:
            peer.answer(stream)
        return peer.outcome()
    CASES[name] = run


# Well-formed requests.

@case
def requests(port):
    peer = Peer(port)
    for stream in range(1, 200, 2):
        peer.request(stream)
    for stream in range(1, 200, 2):
        peer.answer(stream)
    statuses = sorted(peer.events)
    return f"{len(statuses)} answers, all {set(event.split()[1] for event in statuses)}"


@case
def body_in_parts(port):
    peer = Peer(port)
    peer.send(peer.headers(1, post()))
    peer.ping()
    for index in range(len(SEND)):
        peer.send(peer.data(1, SEND[index:index + 1], end=False))
    peer.send(peer.data(1, b""))
    peer.answer(1)
    return ", ".join(peer.events)


@case
def batch_larger_than_the_windows(port):
    peer = Peer(port)
    body = (SEND + b"\n") * (900_000 // (len(SEND) + 1))
    peer.send(peer.headers(1, head("POST", "/api/sends/batch", ALICE, ("content-type", "application/x-ndjson"))))
    peer.upload(1, body)
    peer.send(WindowUpdateFrame(0, window_increment=1 << 30), WindowUpdateFrame(1, window_increment=1 << 30))
    peer.answer(1)
    lines = peer.bodies[1].count(b'{"id"')
    return ", ".join(peer.events) + f", {lines} ids"


@case
def continue_after_admission(port):
    peer = Peer(port)
    peer.send(peer.headers(1, post(("expect", "100-continue"), length=len(SEND))))
    peer.until(lambda frame: isinstance(frame, HeadersFrame))
    peer.send(peer.data(1, SEND))
    peer.answer(1)
    # A stranger is refused instead, and asked not to send the body.
    peer.send(peer.headers(3, head("POST", "/api/sends", JSON, ("expect", "100-continue"), length=len(SEND))))
    peer.until(lambda frame: isinstance(frame, RstStreamFrame))
    return peer.outcome()


@case
def head_has_no_body(port):
    peer = Peer(port)
    peer.send(peer.headers(1, head("HEAD", "/openapi.json"), end=True))
    peer.answer(1)
    return peer.outcome() + f", {len(peer.bodies.get(1, b''))} bytes"


@case
def trailers_are_ignored(port):
    peer = Peer(port)
    peer.send(
        peer.headers(1, post()), peer.data(1, SEND, end=False), peer.headers(1, [("x-check", "1")], end=True))
    peer.answer(1)
    return peer.outcome()


@case
def same_host_and_authority(port):
    peer = Peer(port)
    peer.request(1, post(("host", "x")))
    peer.answer(1)
    peer.request(3, post(("host", "y")))
    peer.answer(3)
    # An old proxy may send only the one.
    peer.send(peer.headers(5, [(":method", "GET"), (":scheme", "http"), (":path", "/nothing"), ("host", "x")], end=True))
    peer.answer(5)
    # The names of hosts have no letter case.
    peer.request(7, post(("host", "X")))
    peer.answer(7)
    return peer.outcome()


@case
def unknown_method(port):
    peer = Peer(port)
    peer.send(
        peer.headers(1, head("NONSENSE", "/nothing"), end=True),
        peer.headers(3, [(":method", "CONNECT"), (":authority", "x:1")], end=True))
    peer.answer(1)
    peer.answer(3)
    peer.events.sort()
    return peer.outcome()


@case
def body_without_type(port):
    """The rules for bodies do not depend on an announced length."""
    peer = Peer(port)
    peer.send(peer.headers(1, head("POST", "/api/sends", ALICE)), peer.data(1, SEND))
    peer.answer(1)
    peer.send(peer.headers(3, head("POST", "/api/sends", ALICE, JSON, ("content-encoding", "gzip"))), peer.data(3, SEND))
    peer.answer(3)
    return peer.outcome()


@case
def refusal_before_the_body(port):
    """A stranger's body is not read: its window does not open."""
    peer = Peer(port)
    peer.send(peer.headers(1, head("POST", "/api/sends", JSON, length=60_000)))
    peer.until(lambda frame: isinstance(frame, RstStreamFrame))
    peer.request(3)
    peer.answer(3)
    return peer.outcome()


@case
def refusal_of_a_head_with_a_large_body(port):
    """Refused at once: the body, which may not be on its way, is not waited for."""
    peer = Peer(port)
    peer.send(peer.headers(1, head("BREW", "/api/sends", ALICE, JSON, length=100_000)))
    peer.until(lambda frame: isinstance(frame, RstStreamFrame))
    peer.request(3)
    peer.answer(3)
    return peer.outcome()


@case
def too_large_body(port):
    peer = Peer(port)
    peer.send(peer.headers(1, post(length=70_000)))
    peer.until(lambda frame: isinstance(frame, RstStreamFrame))
    peer.request(3)
    peer.answer(3)
    return peer.outcome()


@case
def many_large_answers(port):
    """Answers wait for their windows: the server takes no further requests until they are sent."""
    peer = Peer(port, settings={4: 0})
    streams = range(1, 2 * 128, 2)
    for stream in streams:
        peer.send(peer.headers(stream, head("GET", "/openapi.json"), end=True))
    peer.until(lambda frame: isinstance(frame, HeadersFrame))
    peer.send(
        WindowUpdateFrame(0, window_increment=1 << 30), SettingsFrame(0, settings={4: 1 << 20}))
    for stream in streams:
        peer.answer(stream)
    documents = set(peer.bodies.values())
    json.loads(max(documents))
    return f"{len(peer.bodies)} answers, {len(documents)} document"


@case
def upload_goes_on_after_the_answer(port):
    """What is on its way when the stream ends is not held against the connection."""
    peer = Peer(port)
    peer.send(peer.headers(1, post()))
    rest = 900_000
    while rest > 0:
        size = min(rest, 16384, peer.windows[0], peer.windows[1])
        if size > 0:
            peer.send(peer.data(1, b" " * size, end=False))
            peer.spend(1, size)
            rest -= size
        elif peer.step() is None:
            break
    # Streams are answered in any order: the second request waits until the first has its outcome.
    while 1 not in peer.ended and peer.step() is not None:
        pass
    peer.request(3)
    peer.answer(3)
    return peer.outcome()


# Malformed requests and frames (RFC 9113).

frames("data_on_idle_stream", lambda p: [p.data(1, b"x")])
frames("headers_on_stream_0", lambda p: [p.headers(1, GET, end=True), Raw(1, 0, p.block(GET), flags=5)])
frames("even_stream", lambda p: [p.headers(2, GET, end=True)])
frames("lower_stream", lambda p: [p.headers(5, GET, end=True), p.headers(3, GET, end=True)], [5])
frames("large_frame", lambda p: [p.headers(1, post()), Raw(0, 1, bytes(16385))])
frames("short_ping", lambda p: [Raw(6, 0, b"1234")])
frames("short_priority", lambda p: [Raw(2, 1, b"1234")])
frames("short_reset", lambda p: [p.headers(1, post()), Raw(3, 1, b"12")])
frames("reset_of_idle_stream", lambda p: [RstStreamFrame(1, error_code=8)])
frames("settings_of_odd_length", lambda p: [Raw(4, 0, b"1234")])
frames("settings_on_a_stream", lambda p: [Raw(4, 1, b"")])
frames("settings_acknowledgement_with_data", lambda p: [Raw(4, 0, b"123456", flags=1)])
frames("settings_with_wrong_push", lambda p: [SettingsFrame(0, settings={2: 2})])
frames("settings_with_wrong_window", lambda p: [SettingsFrame(0, settings={4: 1 << 31})])
frames("settings_with_wrong_frame_size", lambda p: [SettingsFrame(0, settings={5: 1})])
frames("push_promise", lambda p: [p.headers(1, post()), Raw(5, 1, (2).to_bytes(4, "big") + p.block(GET), flags=4)])
frames("continuation_alone", lambda p: [p.headers(1, post()), Raw(9, 1, p.block(GET), flags=4)])
frames("frame_within_a_header_section", lambda p: [Raw(1, 1, p.block(GET), flags=1), PingFrame(0)])
frames("data_after_the_end", lambda p: [p.headers(1, GET, end=True), p.data(1, b"x")])
frames("padding_longer_than_the_frame", lambda p: [p.headers(1, post()), Raw(0, 1, b"\x05abc", flags=8)])
frames("window_of_0", lambda p: [WindowUpdateFrame(0, window_increment=1), Raw(8, 0, bytes(4))])
frames("window_of_0_of_a_stream", lambda p: [p.headers(1, post()), Raw(8, 1, bytes(4))])
frames("window_overflow", lambda p: [WindowUpdateFrame(0, window_increment=(1 << 31) - 1)])
frames(
    "window_overflow_of_a_stream",
    lambda p: [p.headers(1, post()), WindowUpdateFrame(1, window_increment=(1 << 31) - 1)], [1])
frames("window_of_idle_stream", lambda p: [WindowUpdateFrame(1, window_increment=1)])
frames("broken_header_block", lambda p: [p.headers(1, b"\xff\xff\xff\xff\xff\xff\xff", end=True)])
frames("unknown_frame", lambda p: [Raw(0xfa, 0, b"anything")])
frames("dependency_on_itself", lambda p: [Raw(2, 1, (1).to_bytes(4, "big") + b"\x10")])


def malformed(name, fields, body=None):
    def build(peer):
        last = [peer.headers(3, GET, end=True)]
        if body is None:
            return [peer.headers(1, fields, end=True)] + last
        return [peer.headers(1, fields), peer.data(1, body)] + last
    frames(name, build, [1, 3])


malformed("no_method", GET[1:])
malformed("no_scheme", GET[:1] + GET[2:])
malformed("no_path", GET[:3])
malformed("empty_path", GET[:3] + [(":path", "")])
malformed("no_authority", GET[:2] + GET[3:])
malformed("two_paths", GET + [(":path", "/api")])
malformed("unknown_pseudo_field", GET + [(":status", "200")])
malformed("pseudo_field_after_others", GET[:3] + [("x", "1"), GET[3]])
malformed("upper_case_name", GET + [("X-Upper", "1")])
malformed("connection_field", GET + [("connection", "close")])
malformed("transfer_encoding", GET + [("transfer-encoding", "chunked")])
malformed("te_other_than_trailers", GET + [("te", "gzip")])
malformed("two_hosts", GET + [("host", "x"), ("host", "x")])
malformed("name_with_a_space", GET + [("x y", "1")])
malformed("value_with_a_line_break", GET + [("x", "1\r\nevil: 1")])
malformed("value_with_a_null", GET + [("x", "1\0")])
malformed("length_shorter_than_the_body", post(length=1), SEND)
malformed("length_longer_than_the_body", post(length=len(SEND) + 1), SEND)
malformed("length_that_is_no_number", post(("content-length", "+1")), b"x")
malformed("length_beyond_63_bits", post(length=1 << 63), b"x")
malformed("two_lengths", post(("content-length", "1"), length=1), b"x")


@case
def too_many_streams(port):
    peer = Peer(port)
    peer.greet()
    for stream in range(1, 2 * 129, 2):
        peer.send(peer.headers(stream, post()))
    peer.until(lambda frame: isinstance(frame, GoAwayFrame))
    return peer.events[-1] + f" after {peer.settings.get(3)} streams"


@case
def wrong_preface(port):
    peer = Peer(port, preface=b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
    answer = b""
    while more := peer.socket.recv(65536):
        answer += more
    return answer[:12].decode()


@case
def preface_without_settings(port):
    peer = Peer(port, preface=PREFACE + Raw(6, 0, bytes(8)).serialize())
    return peer.end()


@case
def preface_byte_by_byte(port):
    peer = Peer(port, preface=b"")
    peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in PREFACE:
        peer.raw(bytes([byte]))
    peer.send(SettingsFrame(0), peer.headers(1, GET, end=True))
    peer.answer(1)
    return peer.outcome()


# Floods.

def flood(name, build, settings=None):
    def run(port):
        peer = Peer(port, settings)
        peer.greet()
        chunk = build(peer)
        chunk = chunk if isinstance(chunk, bytes) else b"".join(frame.serialize() for frame in chunk)
        # More than any limit; what is not read any more cannot be sent.
        for _ in range(200):
            peer.raw(chunk)
        return peer.end()
    CASES[name] = run


flood("ping_flood", lambda p: [PingFrame(0)] * 100)
flood("settings_flood", lambda p: [SettingsFrame(0, settings={3: 1})] * 100)
flood("priority_flood", lambda p: [PriorityFrame(1, depends_on=0, stream_weight=1)] * 100)
flood("window_flood", lambda p: [WindowUpdateFrame(0, window_increment=1)] * 100)
flood("unknown_frame_flood", lambda p: [Raw(0xfa, 0, b"")] * 100)


@case
def empty_data_flood(port):
    peer = Peer(port)
    peer.greet()
    peer.send(peer.headers(1, post()))
    for _ in range(200):
        peer.send(*[peer.data(1, b"", end=False)] * 100)
    return last_of(peer)


@case
def padding_flood(port):
    peer = Peer(port)
    peer.greet()
    peer.send(peer.headers(1, post()))
    for _ in range(200):
        peer.send(*[Raw(0, 1, b"\x03\0\0\0", flags=8)] * 100)
    return last_of(peer)


def last_of(peer):
    """The GOAWAY alone: which streams were answered before depends on the moment."""
    if "closed" not in peer.events:
        peer.end()
    return ", ".join(event for event in peer.events if event.startswith("goaway") or event == "closed")


def streams(peer, count, build, isSlow=False):
    for start in range(1, 2 * count, 20):
        peer.send(*[frame for stream in range(start, start + 20, 2) for frame in build(stream)])
        # Otherwise the streams that the server has not yet reset could be too many.
        if isSlow:
            peer.ping()
        if "closed" in peer.events:
            break
    return last_of(peer)


@case
def rapid_reset(port):
    peer = Peer(port)
    peer.greet()
    return streams(peer, 5000, lambda s: [peer.headers(s, post()), RstStreamFrame(s, error_code=8)])


@case
def rapid_reset_without_error(port):
    peer = Peer(port)
    peer.greet()
    return streams(peer, 5000, lambda s: [peer.headers(s, post()), RstStreamFrame(s, error_code=0)])


@case
def resets_provoked(port):
    """The client makes the server reset the streams."""
    peer = Peer(port)
    peer.greet()
    return streams(
        peer, 5000, lambda s: [peer.headers(s, post()), WindowUpdateFrame(s, window_increment=(1 << 31) - 1)], True)


@case
def malformed_requests_in_numbers(port):
    peer = Peer(port)
    peer.greet()
    return streams(peer, 5000, lambda s: [peer.headers(s, GET[1:], end=True)], True)


@case
def continuation_flood(port):
    peer = Peer(port)
    peer.greet()
    peer.send(Raw(1, 1, peer.block(GET), flags=1))
    for _ in range(1000):
        peer.send(*[Raw(9, 1, b"")] * 100)
    return ends(peer)


@case
def continuation_flood_with_fields(port):
    peer = Peer(port)
    peer.greet()
    peer.send(Raw(1, 1, peer.block(GET), flags=1))
    for _ in range(1000):
        peer.send(Raw(9, 1, peer.block([("x-long", "x" * 8000)])))
    return ends(peer)


def ends(peer):
    """Whether the connection ends; how depends on the version of nghttp2."""
    peer.end()
    return "closed, no answer" if not any(event.startswith("1 ") for event in peer.events) else str(peer.events)


@case
def header_bomb(port):
    """A small block that refers to one large field again and again."""
    peer = Peer(port)
    peer.greet()
    big = hpack.Encoder().encode([("x-bomb", "x" * 4000)], huffman=False)
    # 62 is the youngest field of the dynamic table.
    peer.send(peer.headers(1, peer.block(GET) + big + bytes([0x80 | 62]) * 12_000, end=True))
    return last_of(peer)


@case
def header_bomb_in_trailers(port):
    """Trailers are ignored, but nghttp2 examines each of their fields."""
    peer = Peer(port)
    peer.greet()
    big = hpack.Encoder().encode([("x-bomb", "x" * 4000)], huffman=False)
    peer.send(peer.headers(1, post()), peer.headers(1, big + bytes([0x80 | 62]) * 12_000, end=True))
    return last_of(peer)


@case
def too_large_header(port):
    peer = Peer(port)
    peer.greet()
    large = peer.block(GET + [(f"x-{index}", "x" * 2000) for index in range(20)])
    first, rest = large[:16384], large[16384:]
    peer.send(Raw(1, 1, first, flags=1))
    while rest:
        part, rest = rest[:16384], rest[16384:]
        peer.send(Raw(9, 1, part, flags=0 if rest else 4))
    peer.answer(1)
    # The header table is still right.
    peer.send(peer.headers(3, GET, end=True))
    peer.answer(3)
    peer.send(peer.headers(5, GET + [(f"x-{index}", "1") for index in range(101)], end=True))
    peer.answer(5)
    return peer.outcome()


# With special settings of the front end.

@other
def late_body(port):
    peer = Peer(port)
    peer.send(peer.headers(1, post(length=100)), peer.data(1, b"{", end=False))
    peer.until(lambda frame: isinstance(frame, RstStreamFrame))
    # The others of the connection are not concerned.
    peer.request(3)
    peer.answer(3)
    return peer.outcome()


@other
def windows_before_admission(port):
    """The authenticator waits."""
    peer = Peer(port)
    peer.greet()
    peer.send(peer.headers(1, head("POST", "/api/sends/batch", ALICE, ("content-type", "application/x-ndjson"))))
    opened = []
    for _ in range(4):
        peer.send(peer.data(1, bytes(16000), end=False))
        peer.send(PingFrame(0, opaque_data=b"opening?"))
        peer.until(lambda frame: isinstance(frame, PingFrame) or opened.append(type(frame).__name__))
    peer.send(peer.data(1, bytes(16000), end=False))
    peer.end()
    return f"{opened}, " + ", ".join(peer.events)


@other
def closed_window(port):
    """Never lets the server send an answer."""
    peer = Peer(port, settings={4: 0})
    peer.send(peer.headers(1, head("GET", "/openapi.json"), end=True))
    peer.until(lambda frame: isinstance(frame, RstStreamFrame))
    return peer.outcome()


@other
def answers_beyond_the_budget(port):
    """Keeps its window closed, then reads: the budget has room again."""
    peer = Peer(port, settings={4: 0})
    peer.greet()
    for stream in (1, 3):
        peer.send(peer.headers(stream, head("GET", "/answers/whole?size=250000"), end=True))
        peer.until(lambda frame: isinstance(frame, HeadersFrame) and frame.stream_id == stream)
    # The first one has as much as a connection may have.
    other = Peer(port)
    other.send(other.headers(1, head("GET", "/answers/whole?size=250000"), end=True))
    other.answer(1)
    outcome = ", ".join(peer.events) + ", other " + other.events[0]
    peer.send(WindowUpdateFrame(0, window_increment=1 << 30))
    for stream in (1, 3):
        peer.send(WindowUpdateFrame(stream, window_increment=1 << 20))
        peer.answer(stream)
    peer.send(peer.headers(5, head("GET", "/answers/whole?size=250000"), end=True))
    peer.until(lambda frame: isinstance(frame, HeadersFrame) and frame.stream_id == 5)
    return outcome + ", then " + peer.events[-1]


@other
def answer_in_parts(port):
    """Reads an answer in parts when its window opens."""
    peer = Peer(port, settings={4: 0})
    peer.greet()
    peer.send(peer.headers(1, head("GET", "/answers/parts?count=100&size=10000"), end=True))
    peer.until(lambda frame: isinstance(frame, HeadersFrame))
    peer.send(peer.headers(3, head("GET", "/answers/look"), end=True))
    peer.until(lambda frame: isinstance(frame, HeadersFrame) and frame.stream_id == 3)
    first = f"1 200, {len(peer.bodies.get(1, b''))} bytes"
    peer.send(WindowUpdateFrame(0, window_increment=1 << 30), WindowUpdateFrame(1, window_increment=1 << 30))
    peer.answer(1)
    return f"{first}, then {len(peer.bodies[1])} bytes, {peer.events[1]}"


@other
def broken_answer(port):
    """An answer that breaks off."""
    peer = Peer(port)
    peer.send(peer.headers(1, head("GET", "/answers/parts?count=3&size=10&fails=1"), end=True))
    peer.answer(1)
    peer.send(peer.headers(3, head("GET", "/nothing"), end=True))
    peer.answer(3)
    return peer.outcome()


@other
def unread_answers(port):
    """Lets the server send, and reads nothing."""
    peer = Peer(port, settings={4: (1 << 31) - 1})
    peer.send(WindowUpdateFrame(0, window_increment=(1 << 31) - 1 - 65535))
    for stream in range(1, 200, 2):
        peer.send(peer.headers(stream, head("GET", "/openapi.json"), end=True))
    # The test's other connection is accepted when this one is closed.
    print("sent", flush=True)
    sys.stdin.read()
    return "left"


@other
def silence(port):
    peer = Peer(port)
    return peer.end()


@other
def idleness(port):
    peer = Peer(port)
    peer.send(peer.headers(1, GET, end=True))
    peer.answer(1)
    return peer.end()


@other
def shutdown(port):
    """Has a stream open, and finishes it when the server has said that it leaves."""
    peer = Peer(port)
    peer.send(peer.headers(1, post()))
    peer.ping()
    print("open", flush=True)
    peer.until(lambda frame: isinstance(frame, GoAwayFrame))
    # Not answered: the client must send it elsewhere.
    peer.request(3)
    peer.send(peer.data(1, SEND))
    return peer.end()


@other
def stuck_stream(port):
    """Opens the windows of short answers only."""
    peer = Peer(port, settings={4: 1000})
    peer.send(peer.headers(1, head("GET", "/openapi.json"), end=True))
    peer.until(lambda frame: isinstance(frame, HeadersFrame))
    peer.send(peer.headers(3, GET, end=True))
    peer.answer(3)
    peer.answer(1)
    peer.send(peer.headers(5, GET, end=True))
    peer.answer(5)
    # The first stream may be reset before the second is answered.
    peer.events.sort()
    return peer.outcome()


@other
def reset_in_the_same_read(port):
    """Resets a stream before the server has looked at its open head."""
    peer = Peer(port)
    peer.greet()
    peer.send(peer.headers(1, post()), RstStreamFrame(1, error_code=8))
    peer.ping()
    print("reset", flush=True)
    return peer.end()


@other
def window_at_shutdown(port):
    """Never lets the server send an answer."""
    peer = Peer(port, settings={4: 0})
    peer.send(peer.headers(1, head("GET", "/openapi.json"), end=True))
    peer.until(lambda frame: isinstance(frame, HeadersFrame))
    print("open", flush=True)
    return peer.end()


def main():
    port, names = int(sys.argv[1]), sys.argv[2:3]
    # Only a defect lets the time run out.
    signal.alarm(120)
    for name in names or CASES:
        try:
            print(f"{name}: {(CASES | OTHERS)[name](port)}", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__} {error}", flush=True)


main()
