#include "shim.h"

// Unused pages go back to the system within a second instead of ten: a worker frees as much as it allocates, several hundred
// megabytes a second, and what it has in use at any moment is less than half of what would be kept. Within a quarter of a second, as it was once,
// a tenth of a worker's time went into giving them back and taking them again, which interrupts the other processors too. And there
// are four heaps for the dozen threads that there are, instead of four for each core: each keeps unused pages of its own.
//
// Each thread keeps pieces of up to 64 KiB at hand instead of 32: what librdkafka compresses a request with. Returned at once, their pages
// would be given back to the system, and taken from it again, for every request.
const char *malloc_conf = "dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4,lg_tcache_max:16";
