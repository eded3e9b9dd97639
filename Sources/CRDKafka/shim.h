#pragma once

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
// The consumer's thread waits for librdkafka's queues on an event descriptor.
#include <sys/eventfd.h>
// Declared by <pthread.h> only for GNU sources, which Swift's Glibc is not built as.
#include <pthread.h>
extern int pthread_setname_np(pthread_t thread, const char *name);
