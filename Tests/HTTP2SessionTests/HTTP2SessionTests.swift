// Tests of HTTP2SessionTests.
