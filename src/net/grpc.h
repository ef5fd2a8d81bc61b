/*
 * What gRPC is on top of HTTP/2 (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md and doc/statuscodes.md), as far
 * as both sides need it: statuses, the headers' values, and messages in frames.
 *
 * Pure but for the memory of a struct grpc_inbox; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_STATUS_LAST = 16,
};

#define GRPC_TEXT_MAX 512 /* of a status, its NUL included; what is longer is cut */
#define GRPC_CODED_TEXT_MAX (3 * GRPC_TEXT_MAX) /* the same as a header's value */

/* ---- headers ---- */

/* 0 to 16 in decimal; anything else is GRPC_UNKNOWN, as a client must take it. */
enum grpc_status grpc_status_parse(const char *value, size_t size);

/*
 * A status's text as the value of `grpc-message`, and back: bytes that are not printed ASCII, and '%', as
 * %XX. What is no code is kept as it is. Both end with a NUL and are cut where they don't fit.
 */
void grpc_text_encode(const char *text, char ret_value[GRPC_CODED_TEXT_MAX]);
void grpc_text_decode(const char *value, size_t size, char ret_text[GRPC_TEXT_MAX]);

#define GRPC_TIMEOUT_MOST_NS (UINT64_C(1) << 62) /* a longer one is taken as this */
/* `grpc-timeout`: at most eight digits and H, M, S, m, u or n. -EINVAL; *ret_ns is left alone then. */
int grpc_timeout_parse(const char *value, size_t size, uint64_t *ret_ns);

/* "application/grpc", with a suffix or parameters or without. */
bool grpc_is_content_type(const char *value, size_t size);

/* ---- messages ---- */

#define GRPC_HEAD_BYTES \
	5 /* before a message: whether it is compressed, and its length, big end first */

void grpc_head_write(uint8_t head[GRPC_HEAD_BYTES], uint32_t size);

/* One message as it comes in, in pieces of any size. */
struct grpc_inbox {
	uint8_t head[GRPC_HEAD_BYTES];
	size_t head_size;  /* what is there of it */
	size_t size, have; /* of the message, and what is there of it */
	uint8_t *data;     /* no more is allocated than has come, or twice that */
	size_t room;
};

/*
 * Takes what has come. `most_bytes` of the message are allowed. -EMSGSIZE; -EOPNOTSUPP: it is compressed,
 * which nobody asked for; -EPROTO: there is more than one message; -ENOMEM. After an error only
 * grpc_inbox_free() may follow.
 */
int grpc_inbox_take(struct grpc_inbox *inbox, const uint8_t *data, size_t size, size_t most_bytes);

/* True when there is one whole message: `data` and `size`. */
bool grpc_inbox_is_complete(const struct grpc_inbox *inbox);

void grpc_inbox_free(struct grpc_inbox *inbox);
