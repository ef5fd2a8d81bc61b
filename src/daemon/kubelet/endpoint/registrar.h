/*
 * Registers the plugin at the kubelet's socket. Runs in its own thread, because the kubelet calls the plugin back before it
 * answers the registration, and the loop must serve that call meanwhile. If the kubelet is absent or refuses, the registrar
 * retries after 5 ms. Each further wait is twice as long, up to 10 s.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct registrar;

struct registrar_figures {
	bool is_registered;
	uint64_t registrations, failures; /* since the daemon started */
	/* for the last registration: time from registrar_want() to the kubelet's consent */
	uint64_t last_ns;
};

/*
 * Starts the thread; nothing is sent before registrar_want(). Texts are copied. has_preference: the kubelet may call
 * GetPreferredAllocation.
 */
int registrar_start(const char *kubelet_socket, const char *endpoint, const char *resource,
		    bool has_preference, struct registrar **ret, struct error *err);
/* Aborts a call that is under way, and waits for the thread. NULL is fine; returns NULL. */
struct registrar *registrar_stop(struct registrar *registrar);

/* Registers at once, even if already registered. */
void registrar_want(struct registrar *registrar);
/* To be called when the kubelet has gone: the plugin no longer counts as registered, and retries stop. */
void registrar_forget(struct registrar *registrar);

struct registrar_figures registrar_figures(struct registrar *registrar);
