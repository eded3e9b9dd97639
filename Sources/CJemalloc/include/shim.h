#pragma once

// Nothing of jemalloc is called: by being linked it takes the place of the C library's malloc. Its own header is left out, because that
// would declare malloc once more.

/// What jemalloc reads when the process starts; `MALLOC_CONF` in the environment comes before it.
extern const char *malloc_conf;
