"""An OpenID provider whose signing key the test replaces: POST /rotate. Prints its port."""

import os
import sys
import threading

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import flask
import oidc_provider_mock
import werkzeug.serving
from authlib import jose

app = oidc_provider_mock.app()


@app.post("/rotate")
def rotate():
    storage = flask.g.oidc_provider_mock_storage
    storage.jwk = jose.RSAKey.generate_key(is_private=True)
    return ""


server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
print(server.port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
# The test closes the standard input.
sys.stdin.read()
