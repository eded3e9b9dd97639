#include "CPerfCounter.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

int fanfare_count_instructions(pid_t thread) {
  struct perf_event_attr attributes = {
      .type = PERF_TYPE_HARDWARE,
      .size = sizeof(attributes),
      .config = PERF_COUNT_HW_INSTRUCTIONS,
      .inherit = 1,
      .exclude_kernel = 1,
      .exclude_hv = 1,
  };
  return (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int64_t fanfare_counted_instructions(int counter) {
  int64_t count;
  return read(counter, &count, sizeof(count)) == sizeof(count) ? count : -1;
}
