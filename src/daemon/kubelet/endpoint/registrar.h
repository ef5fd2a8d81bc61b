/*
 * Registers the plugin at the kubelet's socket. Uses a thread, because the kubelet calls the plugin back before it answers,
 * and the main thread must serve that call. Retries after 5 ms, then after twice the last delay, up to 10 s. All functions:
 * main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct registrar;

struct registrar_figures {
	bool is_registered;
	uint64_t registrations, failures; /* since the daemon started */
	/* for the last registration: time from registrar_register() to the kubelet's consent */
	uint64_t last_ns;
};

/* Starts the thread, which sends nothing before registrar_register(). has_preference: offers GetPreferredAllocation. */
int registrar_start(const char *kubelet_socket, const char *endpoint, const char *resource,
		    bool has_preference, struct registrar **ret, struct error *err);
/* Aborts a call in progress, and waits for the thread. NULL is allowed; returns NULL. */
struct registrar *registrar_stop(struct registrar *registrar);

/* Registers at once, even if already registered. */
void registrar_register(struct registrar *registrar);
/* Call when the kubelet has gone: the plugin counts as unregistered, and retries stop. */
void registrar_reset(struct registrar *registrar);

struct registrar_figures registrar_figures(struct registrar *registrar);
