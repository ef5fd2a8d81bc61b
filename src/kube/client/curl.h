/*
 * Loads libcurl when the first client starts, not at program start: most daemons need no Kubernetes, and libcurl with its
 * dependencies costs a process more than 8 MiB. allotd also runs without libcurl. Thread safe after loading.
 */
#pragma once

/* libcurl's type checks are macros that would bypass the table of functions. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define CURL_FUNCTIONS(X) \
	X(global_init) \
	X(slist_append) \
	X(slist_free_all) \
	X(easy_init) \
	X(easy_cleanup) \
	X(easy_setopt) \
	X(easy_getinfo) \
	X(easy_strerror) \
	X(multi_init) \
	X(multi_cleanup) \
	X(multi_setopt) \
	X(multi_add_handle) \
	X(multi_remove_handle) \
	X(multi_socket_action) \
	X(multi_info_read)

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
struct curl {
	CURL_FUNCTIONS(CURL_MEMBER)
};
#undef CURL_MEMBER
