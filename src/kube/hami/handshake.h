/*
 * The handshake (annotation hami.io/node-handshake) between a scheduler and a node's device plugin. The scheduler writes
 * "Requesting_<time>", and the plugin answers "Reported_<time>". After waiting in vain, the scheduler writes "Deleted_<time>"
 * and forgets the node's GPUs. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HANDSHAKE_MAX 48

enum handshake {
	/* no annotation, or the plugin's own last answer */
	HANDSHAKE_NONE,
	HANDSHAKE_REQUESTING, /* needs an answer */
	HANDSHAKE_DELETED,    /* needs an answer */
};

/* HANDSHAKE_NONE for NULL (no annotation), and for unknown text. */
enum handshake handshake_parse(const char *text);
void handshake_answer(int64_t now_s, char text[HANDSHAKE_MAX]);
