/*
 * The handshake (annotation hami.io/node-handshake) between a scheduler and the device plugin of a
 * node. The scheduler writes "Requesting_<time>" and the plugin answers "Reported_<time>". A
 * scheduler that has waited too long writes "Deleted_<time>" and forgets the node's GPUs. Pure;
 * thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HANDSHAKE_MAX 48

enum handshake {
	HANDSHAKE_NONE,       /* no request: there is no annotation, or it is an answer */
	HANDSHAKE_REQUESTING, /* needs an answer */
	HANDSHAKE_DELETED,    /* needs an answer */
};

/* Parses the annotation's value; NULL if there is none. Unknown text counts as HANDSHAKE_NONE. */
enum handshake handshake_parse(const char *text);
void handshake_answer(int64_t now_s, char text[HANDSHAKE_MAX]);
