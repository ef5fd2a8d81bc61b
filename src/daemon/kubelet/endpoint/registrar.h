/*
 * Tells the kubelet, at its socket, that there is a plugin. From a thread of its own: before it answers, the
 * kubelet calls the plugin back, which the loop must serve meanwhile. A kubelet that is not there, or refuses, is
 * asked again: after 5 ms first, then after twice as long as before, 10 s at most.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct registrar;

struct registrar_figures {
	bool is_registered;
	uint64_t registrations, failures; /* since the daemon started */
	uint64_t last_ns; /* from registrar_want() to the kubelet's yes, the last time */
};

/* Nothing happens before registrar_want(). Texts are copied; has_preference: GetPreferredAllocation may be called. */
int registrar_start(const char *kubelet_socket, const char *endpoint, const char *resource,
		    bool has_preference, struct registrar **ret, struct error *err);
/* Waits until a call under way has been given up. NULL is fine; returns NULL. */
struct registrar *registrar_stop(struct registrar *registrar);

/* Registers, or again, at once. */
void registrar_want(struct registrar *registrar);
/* The kubelet has gone: nothing is registered, and nobody is there to be asked. */
void registrar_forget(struct registrar *registrar);

struct registrar_figures registrar_figures(struct registrar *registrar);
