#pragma once

// Nothing of jemalloc is called: by being linked it takes the place of the C library's malloc. Its own header is left out, because that
// would declare malloc once more.
