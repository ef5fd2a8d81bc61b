/* A gRPC server for tests, with a service whose loop runs in a thread; and a call to it by our own client. */
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

extern char server_path[64];          /* the server's socket */
extern atomic_uint ended_watch_count; /* streams of Watch that have ended */

/* cmocka setup and teardown: start the server and stop it. */
int server_setup(void **state);
int server_teardown(void **state);

/* Makes the service publish this many numbers, one after the other, to each stream of Watch. */
void publish_numbers(uint64_t times);
/* Waits until the counter is at least `least`; fails the test after PATIENCE_NS. */
void wait_for_count(atomic_uint *counter, unsigned least);

/* Calls by our own client. The caller frees the reply's message. */
struct grpc_reply call_unary(const char *method, const void *message, size_t size);
/* Fails the test unless the server echoes a message of this size. */
void check_echo(size_t size);
