/*
 * Loads libmicrohttpd when the first server starts, not at program start: most daemons serve nothing over HTTP, and the library
 * with its dependencies costs memory and start time. Thread safe once loaded.
 */
#pragma once

#include <microhttpd.h>

#define MHD_LIBRARY "libmicrohttpd.so.12"

#define MHD_FUNCTIONS(X) \
	X(start_daemon) \
	X(stop_daemon) \
	X(add_connection) \
	X(run) \
	X(suspend_connection) \
	X(resume_connection) \
	X(get_timeout) \
	X(get_daemon_info) \
	X(get_connection_info) \
	X(lookup_connection_value) \
	X(create_response_from_buffer) \
	X(create_response_from_callback) \
	X(add_response_header) \
	X(queue_response) \
	X(destroy_response)

#define MHD_MEMBER(name) __typeof__(MHD_##name) *name;
struct mhd {
	MHD_FUNCTIONS(MHD_MEMBER)
};
#undef MHD_MEMBER
