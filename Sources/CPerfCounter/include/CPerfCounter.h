#pragma once
#include <stdint.h>
#include <sys/types.h>

// Begins to count the instructions that a thread and those that it will start carry out in user mode; see
// perf_event_open(2). Returns a file descriptor, or -1.
int fanfare_count_instructions(pid_t thread);

// The count so far of such a file descriptor, or -1.
int64_t fanfare_counted_instructions(int counter);
