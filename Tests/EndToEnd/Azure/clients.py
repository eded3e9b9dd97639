"""Lets a test call two clients of Azure Notification Hubs from PyPI: a JSON object in, a JSON object out.

POST /call  {"client": "rest" or "unofficial", "connection", "hub", "method", "arguments": {…}}
POST /make  {"factory", "arguments": {…}}, a function of the package azure_notification_hub
GET  /names the clients' public methods and factories
The answer is {"result"} or {"error", "status"}, with what the client printed as "output". An argument
{"$time": "2030-01-02T03:04:05+00:00"} is a datetime, {"$set": […]} a set.
"""

import contextlib
import datetime
import http.server
import inspect
import io
import json

import azure_notification_hub
from notificationhubs_rest_python.NotificationHub import AzureNotificationHub


def public(kind):
    return sorted(name for name, value in inspect.getmembers(kind) if callable(value) and not name.startswith("_"))


def argument(value):
    if isinstance(value, dict) and "$time" in value:
        return datetime.datetime.fromisoformat(value["$time"])
    if isinstance(value, dict) and "$set" in value:
        return set(value["$set"])
    return value


def call(order):
    arguments = {name: argument(value) for name, value in order["arguments"].items()}
    if "factory" in order:
        return getattr(azure_notification_hub, order["factory"])(**arguments)
    if order["client"] == "rest":
        # The class holds the connection: the last one counts.
        client = AzureNotificationHub(order["connection"], order["hub"], order.get("debug", 0))
        return getattr(client, order["method"])(**arguments)
    with azure_notification_hub.NotificationHubsClient(order["connection"], order["hub"]) as client:
        return getattr(client, order["method"])(**arguments)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({
            "rest": public(AzureNotificationHub),
            "unofficial": public(azure_notification_hub.NotificationHubsClient),
            "factories": sorted(n for n in azure_notification_hub.__all__ if n.startswith("create_")),
        })

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["content-length"])))
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                reply = {"result": call(order)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}", "status": getattr(error, "status_code", 0)}
        self.answer(reply | {"output": output.getvalue()})

    def answer(self, reply):
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"clients 127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
