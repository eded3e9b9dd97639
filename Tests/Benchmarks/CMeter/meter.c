// Counts every request for memory, of Swift and of the C libraries alike, by standing in front of glibc's allocator: what is defined in the
// executable is what all its libraries call. (The benchmark package's own counters need a library that is preloaded, or hooks in the Swift
// runtime that crash with Swift 6.3 on Linux: https://github.com/ordo-one/benchmark/issues/349.)
#include "CMeter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong count;

static void note(void) { atomic_fetch_add_explicit(&count, 1, memory_order_relaxed); }

unsigned long meter_allocations(void) { return atomic_load_explicit(&count, memory_order_relaxed); }

// Exact, where the benchmark package's own figure comes in steps of ten milliseconds.
unsigned long meter_cpu_nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (unsigned long)time.tv_sec * 1000000000 + (unsigned long)time.tv_nsec;
}

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  note();
  return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
  note();
  return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  note();
  void *memory = __libc_memalign(alignment, size);
  if (memory == NULL) return ENOMEM;
  *result = memory;
  return 0;
}
