// Nothing to call: the library is put before libnghttp2 with LD_PRELOAD.
