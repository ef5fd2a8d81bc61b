/* Packs protobuf-c messages into gRPC messages. */
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
