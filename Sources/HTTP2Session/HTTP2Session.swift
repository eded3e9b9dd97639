// The seams of HTTP2Session are written first.
