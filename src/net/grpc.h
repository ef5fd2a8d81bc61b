/*
 * The part of gRPC above HTTP/2 that client and server share (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md and
 * doc/statuscodes.md): statuses, the values of headers, and the framing of messages. No I/O, no clock, no global state. Thread
 * safe, if each struct grpc_inbox belongs to one thread.
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

#define GRPC_TEXT_MAX 512 /* size of a status text, including the NUL; longer texts are cut */
/* size of a status text that is encoded as a header's value */
#define GRPC_CODED_TEXT_MAX (3 * GRPC_TEXT_MAX)

/* A status is 0 to 16 in decimal. Any other value becomes GRPC_UNKNOWN, as the protocol requires of clients. */
enum grpc_status grpc_status_parse(const char *value, size_t size);

/* '%' and bytes that are not printable ASCII become %XX; a malformed %XX is decoded to itself. Long results are cut. */
void grpc_text_encode(const char *text, char ret_value[GRPC_CODED_TEXT_MAX]);
void grpc_text_decode(const char *value, size_t size, char ret_text[GRPC_TEXT_MAX]);

#define GRPC_TIMEOUT_MOST_NS (UINT64_C(1) << 62) /* longer timeouts are reduced to this */
/* Parses `grpc-timeout`: at most eight digits and H, M, S, m, u or n. On -EINVAL *ret_ns is unchanged. */
int grpc_timeout_parse(const char *value, size_t size, uint64_t *ret_ns);

/* Whether a content type is "application/grpc", with or without a suffix or parameters. */
bool grpc_is_content_type(const char *value, size_t size);

/* Before each message, one byte says whether it is compressed, and four give its length, big-endian. */
#define GRPC_HEAD_BYTES 5

void grpc_head_write(uint8_t head[GRPC_HEAD_BYTES], uint32_t size);

struct grpc_inbox {
	uint8_t head[GRPC_HEAD_BYTES];
	size_t head_size;
	size_t size, have; /* announced size of the message, and bytes received of it */
	uint8_t *data;     /* allocated for at most twice the bytes received */
	size_t room;
};

/*
 * Adds received bytes to the message. -EMSGSIZE if it is longer than `most_bytes`; -EOPNOTSUPP if it is compressed, which we
 * never offer; -EPROTO if a second message begins; -ENOMEM. After an error only grpc_inbox_free() may be called.
 */
int grpc_inbox_take(struct grpc_inbox *inbox, const uint8_t *data, size_t size, size_t most_bytes);

bool grpc_inbox_is_complete(const struct grpc_inbox *inbox);

void grpc_inbox_free(struct grpc_inbox *inbox);
