/* Packs protobuf-c messages into gRPC messages, and answers calls with them. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

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

/* Answers the call with the message, and drops the reference to it. NULL: out of memory. */
static inline void reply_and_end(struct grpc_call *call, struct grpc_message *message)
{
	if (message)
		grpc_call_send(call, message);
	grpc_call_end(call, message ? GRPC_OK : GRPC_RESOURCE_EXHAUSTED,
		      message ? NULL : "allotd is out of memory");
	grpc_message_unref(message);
}
