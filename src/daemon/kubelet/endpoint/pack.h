/* Messages of protobuf-c as answers of gRPC. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "net/grpc_server.h"

/* The messages have no const; what is packed is only read. */
static inline char *text(const char *constant)
{
	return (char *)(uintptr_t)constant;
}

/* NULL: no memory. */
static inline struct grpc_message *pack(const ProtobufCMessage *from)
{
	struct grpc_message *m = grpc_message_new(protobuf_c_message_get_packed_size(from));
	if (m)
		protobuf_c_message_pack(from, grpc_message_data(m));
	return m;
}
