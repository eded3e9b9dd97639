#pragma once

/// How often this process has asked for memory so far, on all threads.
unsigned long meter_allocations(void);

/// The processor time this process has used so far, on all threads, in nanoseconds.
unsigned long meter_cpu_nanoseconds(void);
