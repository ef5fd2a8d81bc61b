/* Packs protobuf-c messages into gRPC messages, and answers calls with them. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/grpc_server.h"

/* Casts const away: protobuf-c only reads the text when packing. */
static inline char *text(const char *constant)
{
	return (char *)(uintptr_t)constant;
}

/* Returns NULL if out of memory. */
static inline struct grpc_message *pack(const ProtobufCMessage *from)
{
	struct grpc_message *m = grpc_message_new(protobuf_c_message_get_packed_size(from));
	if (m)
		protobuf_c_message_pack(from, grpc_message_data(m));
	return m;
}

/*
 * Makes a repeated field: `count` pointers to zeroed messages of `size` bytes, in one block that the caller frees with free().
 * The pointer after the last is NULL. Returns NULL if out of memory.
 */
static inline void *new_list(size_t count, size_t size)
{
	void **list = calloc(count + 1, sizeof(*list) + size);
	char *first = (char *)(list + count + 1);
	for (size_t i = 0; list && i < count; i++)
		list[i] = first + i * size;
	return list;
}

/* Answers the call with the message, and drops the reference to it. NULL: out of memory. */
static inline void reply_and_end(struct grpc_call *call, struct grpc_message *message)
{
	if (message)
		grpc_call_send(call, message);
	grpc_call_end(call, message ? GRPC_OK : GRPC_RESOURCE_EXHAUSTED,
		      message ? NULL : "allotd is out of memory");
	grpc_message_unref(message);
}
