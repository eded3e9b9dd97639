// Makes a push service of nghttpd, nghttp2's own server: every request is answered 200 without a body, as APNs answers a push
// that it takes, and counted. Preloaded into nghttpd by `fanfare bench`; C, because it stands in for a C function.
//
// Without it nghttpd would look for a file named like each device, and could not say how many requests it has answered.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// libnghttp2's nghttp2_nv.
struct field {
  const uint8_t *name, *value;
  size_t name_length, value_length;
  uint8_t flags;
};

typedef int submit_response(void *session, int32_t stream, const struct field *fields, size_t count, const void *body);

static submit_response *real;
static _Atomic uint64_t *answers;

// Where the file that FANFARE_SINK_COUNT names holds the number of answers, eight bytes in the machine's order.
__attribute__((constructor)) static void prepare(void) {
  const char *path = getenv("FANFARE_SINK_COUNT");
  // Without a body both do the same; the newer one, of nghttp2 1.60, outlives the other.
  real = (submit_response *)dlsym(RTLD_NEXT, "nghttp2_submit_response2");
  if (!real) real = (submit_response *)dlsym(RTLD_NEXT, "nghttp2_submit_response");
  // Also preloaded into what starts nghttpd and becomes it.
  if (!path || !real) return;
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *answers) != 0) abort();
  void *memory = mmap(NULL, sizeof *answers, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) abort();
  answers = memory;
}

static int answer(void *session, int32_t stream) {
  static const struct field ok = {(const uint8_t *)":status", (const uint8_t *)"200", 7, 3, 0};
  if (!answers) abort();
  atomic_fetch_add_explicit(answers, 1, memory_order_relaxed);
  return real(session, stream, &ok, 1, NULL);
}

int nghttp2_submit_response(void *session, int32_t stream, const struct field *fields, size_t count, const void *body) {
  (void)fields;
  (void)count;
  (void)body;
  return answer(session, stream);
}

// What a newer nghttpd answers through; its body is of another type, which makes no difference here.
int nghttp2_submit_response2(void *session, int32_t stream, const struct field *fields, size_t count, const void *body) {
  (void)fields;
  (void)count;
  (void)body;
  return answer(session, stream);
}
