#include "shim.h"

// Unused pages go back to the system after half a second instead of ten: a worker frees as much as it allocates, several hundred
// megabytes a second, and what it has in use at any moment is less than half of what would be kept.
const char *malloc_conf = "dirty_decay_ms:500,muzzy_decay_ms:0";
