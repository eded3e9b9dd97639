"""Sends the requests of corpus files to a deployment and prints the answers, without the values that always change.

replay.py http1|http2 API OPERATIONS FILE…    API and OPERATIONS are host:port

With http2 the file Golden/answers.txt is read, and only answers that differ from those over HTTP/1.1 are printed.

A corpus file has requests, divided by empty lines. Each is a line `METHOD TARGET [@USER]`, fields, and a body, which
begins at the first line that is no field. Host, Authorization (the password of a user is the name; a user `sas:RULE`
has a token of that shared access rule), Content-Type and Content-Length are added; a field without a value is left out
instead. Lines before the request:
  # …            a comment
  = NAME REGEX   from here on, «NAME» stands for the first group of the pattern in the answer, in requests and answers
  until REGEX    sends the request again until the answer matches: what it shows is not there at once
  mask REGEX     replaces each match in the answer by …
  omit REGEX     leaves each match out of the answer: what may be shown on the way to it
  sorted         prints the objects of a list, which is in the order of random ids, in their own order
  operations     sends the request to the operations listener
  closes         ends the client's half of the connection before the answer
  http1          leaves the request out over HTTP/2
`RUN ARGUMENTS` is no request: it runs the program $PROGRAM and prints its status, output and errors. The rest
is the content of the file «input», and «yaml:VALUE» is deploy/fanfare.yaml with that value for each of its keys.
A request `RAW text` sends these bytes, with Python's escapes, on a connection of its own, and over HTTP/1.1 alone.
«x*70000» stands for 70,000 times x, «now+60» for the time in 60 seconds, «day+3» for the
date in three days, «empty» for nothing.
"""
import base64
import datetime
import hashlib
import hmac
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.parse

HOST = "push.example"
KEYS = {
    "Listen": "Zm9yIHRlc3RzOiBsaXN0ZW4gb25seQ==", "Send": "Zm9yIHRlc3RzOiBzZW5kIG9ubHk=",
    "Full": "Zm9yIHRlc3RzOiBmdWxsIGFjY2Vzcw=="}
UUID = r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
# What differs in every run, and what is printed instead. All rules are here.
CHANGING = [
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "«time»"),
    (r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "«date»"),
    (UUID, "«uuid»"),
    (r"(?im)^(etag: |retry-after: )(.*)$", r"\1…"),
    (r'"csrfToken":"[0-9a-f]+"', '"csrfToken":"…"'),
    (r"(?m)^wrong\.yaml:\d+: ", ""),
    (r'"(perSecond|seconds)":[0-9.e-]+', r'"\1":…'),
    (r"\d[\d.]* s, \d+/s", "…"),
    (r"\b\d s ago(?=  )", "now    "),
    (r"\(\d s ago\)", "(now)"),
    (r"\buser\.hash=\w+", "user.hash=…"),
    # Azure's.
    (r"\bse=\d+(&(?:amp;)?)sig=[0-9a-f]+", r"se=…\1sig=…"),
    (r"\bTimeStamp:[^<]+", "TimeStamp:«time»"),
    (r"W/&quot;[0-9a-f]{16}&quot;", "W/&quot;…&quot;"),
    (r"<ETag>[0-9a-f]{16}</ETag>", "<ETag>…</ETag>"),
]
named = {}


def normalised(text):
    for name, value in sorted(named.items(), key=lambda item: -len(item[1])):
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", f"«{name}»", text)
    for pattern, replacement in CHANGING:
        text = re.sub(pattern, replacement, text)
    return text


class Entry:
    def __init__(self, text):
        self.names, self.until, self.masks, self.omissions, self.method = [], None, [], [], None
        self.operations = self.http1 = self.sorted = self.closes = False
        lines = text.split("\n")
        while lines:
            line = lines.pop(0)
            word, _, rest = line.partition(" ")
            if word == "=":
                self.names.append(rest.split(" ", 1))
            elif word == "until":
                self.until = rest
            elif word == "mask":
                self.masks.append(rest)
            elif word == "omit":
                self.omissions.append(rest)
            elif line in ("operations", "http1", "sorted", "closes"):
                setattr(self, line, True)
            elif word != "#":
                break
        self.title = line
        self.fields, self.body = [], None
        if word == "RAW":
            self.raw, self.http1 = rest, True
            return
        self.raw = None
        if word == "RUN":
            self.method, self.target, self.body = word, rest, "\n".join(lines)
            self.http1 = True
            return
        self.method, self.target, *user = line.split(" ")
        self.user = user[0][1:] if user else None
        while lines and (match := re.fullmatch(r"([A-Za-z][A-Za-z0-9-]*):(.*)", lines[0])):
            self.fields.append((match[1], match[2].strip()))
            lines.pop(0)
        if lines:
            self.body = "\n".join(lines)

    def request(self):
        """Target, fields and body as they are sent now."""
        target, body = filled(self.target), None if self.body is None else filled(self.body).encode()
        fields = [("Host", HOST)]
        if self.user:
            fields.append(("Authorization", credentials(self.user, target)))
        if body is not None and target.startswith(("/api", "/hubs")):
            fields.append(("Content-Type", "application/json"))
        if body is not None or self.method in ("POST", "PUT", "PATCH"):
            fields.append(("Content-Length", str(len(body or b""))))
        own = {name.lower() for name, _ in self.fields}
        fields = [field for field in fields if field[0].lower() not in own]
        return target, fields + [(name, filled(value)) for name, value in self.fields if value], body or b""


def filled(text):
    def value(match):
        word = match[1]
        if repeated := re.fullmatch(r"(.+)\*(\d+)", word):
            return repeated[1] * int(repeated[2])
        if later := re.fullmatch(r"now([+-]\d+)", word):
            moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=int(later[1]))
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        if later := re.fullmatch(r"day([+-]\d+)", word):
            return str(datetime.date.today() + datetime.timedelta(days=int(later[1])))
        if word.startswith("yaml:"):
            return yaml(word[5:])
        return "" if word == "empty" else named[word]
    return re.sub("«(.+?)»", value, text)


def yaml(value):
    """A file with the keys of deploy/fanfare.yaml, those in comments too, that have this value instead of their own."""
    example = os.path.join(os.path.dirname(__file__), "..", "..", "..", "deploy", "fanfare.yaml")
    lines = []
    for line in open(example, encoding="utf-8"):
        line = re.sub(r"^( *)# ( *)(?=[a-zA-Z]+:( |$))", r"\1\2", line.rstrip("\n"))
        if match := re.match(r"( *[a-zA-Z]+):(?: +([^ #].*?))?(?: +#.*)?$", line):
            # The names of hubs and hooks decide which keys there are.
            isKept = match[2] is None or line.split(":")[0].strip() in ("hubs", "hooks")
            lines.append(line.replace("hooks: []", "hooks: [audit]") if isKept else f"{match[1]}: {value}")
    with open("wrong.yaml", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return "wrong.yaml"


def run(entry):
    with open("input", "w", encoding="utf-8") as file:
        file.write(filled(entry.body))
    named["input"] = "input"
    arguments = shlex.split(filled(entry.target))
    # The product has not the keys of the workshop.
    workshop = ("FANFARE_SIMULATOR_", "FANFARE_BROKER_", "FANFARE_KAFKA_EMBEDDED")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(workshop)}
    deadline = time.monotonic() + 60
    while True:
        ended = subprocess.run([os.environ["PROGRAM"], *arguments], env=variables, capture_output=True, timeout=60)
        answer = f"status {ended.returncode}\n{text(ended.stdout)}"
        answer += "".join(f"errors: {line}\n" for line in text(ended.stderr).splitlines())
        if entry.until is None or re.search(entry.until, answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


def credentials(user, target):
    if not user.startswith("sas:"):
        return "Basic " + base64.b64encode(f"{user}:{user}".encode()).decode()
    rule = user[4:]
    url = urllib.parse.quote(f"http://{HOST}{target}".lower(), safe="")
    expiry = int(time.time()) + 3600
    mac = hmac.new(KEYS[rule].encode(), f"{url}\n{expiry}".encode(), hashlib.sha256).digest()
    signature = urllib.parse.quote(base64.b64encode(mac), safe="")
    return f"SharedAccessSignature sr={url}&sig={signature}&se={expiry}&skn=Default{rule}SharedAccessSignature"


class HTTP1:
    """Requests one after another on a connection, and on a new one when the server has closed it."""

    def __init__(self, address):
        self.address, self.socket = address, None

    def connect(self):
        host, port = self.address.split(":")
        # Only a defect lets the time run out.
        self.socket, self.received = socket.create_connection((host, int(port)), timeout=60), b""

    def send(self, method, target, fields, body):
        if self.socket is None:
            self.connect()
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
        try:
            self.socket.sendall(head.encode() + body)
        except OSError:
            pass  # refused before the end of the body; the answer is there
        return self.answer(method)

    def answer(self, method):
        head, isOpen = self.until(b"\r\n\r\n"), True
        status, *lines = head.decode().split("\r\n")[:-2]
        if status.split(" ")[1].startswith("1"):
            return status + "\n\n" + self.answer(method)
        fields = dict(line.lower().split(": ", 1) for line in lines)
        if method == "HEAD" or status.split(" ")[1] in ("204", "304"):
            body = b""
        elif fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.until(b"\r\n"), 16):
                body += self.take(size + 2)[:-2]
            self.until(b"\r\n")
        elif "content-length" in fields:
            body = self.take(int(fields["content-length"]))
        else:
            body, isOpen = self.rest(), False
        if fields.get("connection") == "close" or not isOpen:
            self.close()
        return "\n".join([status, *lines]) + "\n\n" + text(body)

    def until(self, end):
        while end not in self.received:
            self.more()
        size = self.received.index(end) + len(end)
        return self.take(size)

    def take(self, size):
        while len(self.received) < size:
            self.more()
        taken, self.received = self.received[:size], self.received[size:]
        return taken

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(f"the connection ended after {self.received}")
        self.received += data

    def rest(self):
        while True:
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                return self.take(len(self.received))
            self.received += data

    def raw(self, data, closesAtOnce):
        """The answers to these bytes, up to one that ends the connection.

        The client's half is closed after the first answer: `Connection: close` would depend on when the server saw it.
        """
        self.close()
        self.connect()
        answers, method = [], text(data).split(" ")[0]
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # refused before the end
        try:
            while self.socket:
                if answers or closesAtOnce:
                    self.socket.shutdown(socket.SHUT_WR)
                answers.append(self.answer(method))
        except (EOFError, OSError, ValueError, IndexError):
            answers.append(text(self.received))
            self.close()
        return "\n\n".join(answers)

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None


class HTTP2:
    """Requests as streams of a connection with prior knowledge, and of a new one when the server has closed it."""

    def __init__(self, address):
        self.address, self.socket = address, None

    def connect(self):
        import h2.config
        import h2.connection
        host, port = self.address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        off = dict.fromkeys(
            ("validate_outbound_headers", "normalize_outbound_headers", "validate_inbound_headers"), False)
        self.peer = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8", **off))
        self.peer.initiate_connection()
        # Room for all answers.
        self.peer.update_settings({4: 1 << 30})
        self.peer.increment_flow_control_window(1 << 30)

    def send(self, method, target, fields, body):
        if self.socket is None:
            self.connect()
        authority = [(":authority", value) for name, value in fields if name == "Host"][:1]
        hosts = [field for field in fields if field[0] == "Host"][1:]
        others = hosts + [field for field in fields if field[0] != "Host"]
        head = [(":method", method), (":scheme", "http"), *authority, (":path", target)]
        stream = self.peer.get_next_available_stream_id()
        self.peer.send_headers(
            stream, head + [(name.lower(), value) for name, value in others], end_stream=not body)
        self.lines, self.data, self.ended = [], b"", False
        while body and not self.ended:
            size = min(len(body), self.peer.local_flow_control_window(stream), self.peer.max_outbound_frame_size)
            if size > 0:
                self.peer.send_data(stream, body[:size], end_stream=size == len(body))
                body = body[size:]
            else:
                self.step(stream)
        while not self.ended:
            self.step(stream)
        return "\n".join(self.lines) + "\n\n" + text(self.data)

    def step(self, stream):
        import h2.events as events
        self.flush()
        try:
            received = self.socket.recv(65536)
        except ConnectionError:
            received = b""
        if not received:
            self.lines.append("the connection ended")
            self.ended, self.socket = True, None
            return
        for event in self.peer.receive_data(received):
            if isinstance(event, (events.ResponseReceived, events.InformationalResponseReceived)):
                self.lines += [f"{name}: {value}" for name, value in event.headers]
            elif isinstance(event, events.DataReceived):
                self.data += event.data
            elif isinstance(event, events.StreamReset) and event.stream_id == stream and not self.ended:
                # Not the one that asks, after the answer, to send no more of the body.
                self.lines.append(f"reset {event.error_code.name}")
                self.ended = True
            elif isinstance(event, events.StreamEnded) and event.stream_id == stream:
                self.ended = True
            elif isinstance(event, events.ConnectionTerminated):
                self.lines.append(f"goaway {event.error_code.name}")
                self.ended, self.socket = True, None
                return
        self.flush()

    def flush(self):
        try:
            self.socket.sendall(self.peer.data_to_send())
        except OSError:
            pass  # the server has closed; what it sent before can still be read


def text(data):
    return data.decode("utf-8", "backslashreplace")


def replay(entry, connection):
    if entry.method == "RUN":
        return run(entry)
    if entry.raw is not None:
        data = entry.raw.encode("latin-1", "backslashreplace").decode("unicode_escape")
        return connection.raw(filled(data).encode("latin-1"), entry.closes)
    deadline = time.monotonic() + 60
    while True:
        answer = connection.send(entry.method, *entry.request())
        if entry.until is None or re.search(entry.until, answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


def in_order(answer):
    """An answer with the objects of its list, or the entries of its feed, in order."""
    list = re.search(r'(?s)(?<=:\[\{).*(?=\}\])|<entry.*</entry>', answer)
    if not list:
        return answer
    comma = "" if list[0].startswith("<") else "},{"
    parts = re.split(r"(?=<entry)" if not comma else re.escape(comma), list[0])
    return answer[:list.start()] + comma.join(sorted(parts)) + answer[list.end():]


def reduced(answer):
    """An answer over HTTP/1.1 in the form of HTTP/2, without the fields that belong to a connection."""
    head, _, body = answer.partition("\n\n")
    status, *lines = head.split("\n")
    words = status.split(" ")
    if len(words) < 2 or not status.startswith("HTTP/1.1 "):
        return answer
    fields = [line.partition(":") for line in lines]
    lines = [f"{name.lower()}:{value}" for name, _, value in fields
             if name.lower() not in ("connection", "transfer-encoding")]
    if words[1].startswith("1"):
        body = reduced(body)
        return f":status: {words[1]}\n" + body
    return "\n".join([f":status: {words[1]}", *lines]) + "\n\n" + body


# Azure's errors have the time without leading zeros. Their lengths are printed as for this one, as in the golden file.
STAMP = "11/28/2026 4:00:00 AM"


def at_one_hour(answer):
    if not re.match(r"(HTTP/1\.1 |:status: )[45]", answer) or not re.search(r"(?im)^trackingid: ", answer):
        return answer
    now = datetime.datetime.now(datetime.timezone.utc)
    # An answer to HEAD does not show it.
    stamp = re.search(r"\bTimeStamp:([^<]+)", answer)
    length = len(stamp[1]) if stamp else len(f"{now.month}/{now.day}/{now.year} {now.hour % 12 or 12}:00:00 AM")
    more = len(STAMP) - length
    return re.sub(r"(?im)^(content-length: ?)([1-9]\d*)", lambda match: f"{match[1]}{int(match[2]) + more}", answer)


def main():
    protocol, api, operations, *files = sys.argv[1:]
    entries = []
    for file in files:
        with open(file, encoding="utf-8") as lines:
            parts = re.split(r"\n{2,}", lines.read().strip("\n"))
        entries += [Entry(part) for part in parts]
    golden = {}
    if protocol == "http2":
        path = os.path.join(os.path.dirname(__file__), "Golden", "answers.txt")
        with open(path, encoding="utf-8") as lines:
            for section in lines.read().split("\n### ")[1:]:
                title, _, answer = section.partition("\n")
                golden[title] = answer.rstrip("\n")
    kind = HTTP1 if protocol == "http1" else HTTP2
    connections = {False: kind(api), True: HTTP1(operations)}
    seen = {}
    print(f"What a deployment answers to the requests of the corpus over {protocol}.")
    for entry in entries:
        title = entry.title[:100]
        seen[title] = number = seen.get(title, 0) + 1
        title += f" ({number})" if number > 1 else ""
        if protocol == "http2" and (entry.http1 or entry.operations):
            continue
        try:
            answer = replay(entry, connections[entry.operations])
        except (EOFError, OSError, ValueError, IndexError, KeyError) as error:
            answer = f"{type(error).__name__}: {error}"
            connections[entry.operations].close()
        for name, pattern in entry.names:
            match = re.search(pattern, answer)
            if match:
                named[name] = match[1]
            else:
                answer += f"\n[nothing for «{name}»]"
        for omission in entry.omissions:
            answer = re.sub(omission, "", answer)
        for mask in entry.masks:
            answer = re.sub(mask, "…", answer)
        answer = normalised(at_one_hour(answer)).rstrip("\n")
        if entry.sorted:
            answer = in_order(answer)
        if protocol == "http1" or reduced(golden.get(title, "")).rstrip("\n") != answer:
            print(f"\n### {title}\n{answer}", flush=True)


main()
