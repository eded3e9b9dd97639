"""Tells schemathesis how to send the media types that it does not know."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def ndjson(ctx, value):
    """Sends a text as it is."""
    return value.encode(errors="surrogatepass") if isinstance(value, str) else str(value).encode()
