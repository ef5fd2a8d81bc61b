/* The gRPC server, with peers as they should be and as they should not. Its loop turns in a thread. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/grpc_client.h"

#define MS NSEC_PER_MSEC
#define PATIENCE_NS (20 * NSEC_PER_SEC)
#define LIMIT_CONNECTIONS 4
#define LIMIT_BYTES 65536

extern char path[64];
extern atomic_uint gone_count, kept_count;

int setup(void **state);
int teardown(void **state);
void tell_watchers(uint64_t times);
void wait_for(atomic_uint *counter, unsigned least);

/* ---- the client of our own ---- */

struct grpc_reply call(const char *method, const void *message, size_t size);
void check_echo(size_t size);
