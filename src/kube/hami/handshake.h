/*
 * The handshake (annotation hami.io/node-handshake) between a scheduler and the device plugin of a node:
 * the scheduler writes "Requesting_<time>", the plugin answers "Reported_<time>"; a scheduler that waited
 * for too long writes "Deleted_<time>", and forgets the node's cards. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HANDSHAKE_MAX 48

enum handshake {
	HANDSHAKE_NONE,       /* nobody asks: no annotation, or an answer */
	HANDSHAKE_REQUESTING, /* to be answered */
	HANDSHAKE_DELETED,    /* to be answered */
};

/* Any text is one: what nobody knows is nobody's question. NULL: there is no annotation. */
enum handshake handshake_parse(const char *text);
void handshake_answer(int64_t now_s, char text[HANDSHAKE_MAX]);
