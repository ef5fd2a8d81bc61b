/*
 * The kubelet's device plugin (v1beta1). It shows each card as equal slices, and with gpu-manager's vocabulary also as units of
 * memory. It reports the cards' health, and gives containers what they need to be a tenant with their share. Only the system
 * daemon has this plugin. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/state/node/node.h"

struct plugin;

/* Checks the settings that depend on each other. Returns -EINVAL, with what would be right, if they do not fit together. Pure. */
int plugin_check(const struct config *config, struct error *err);

/* Sets *ret to NULL if the setting kube_plugin is off. Precondition: cards, census and claims are open. */
int plugin_start(struct node *node, struct plugin **ret, struct error *err);
/* Removes the socket; claims stay. NULL is fine; returns NULL. */
struct plugin *plugin_stop(struct plugin *plugin);

struct plugin_figures {
	bool is_registered; /* all resources are registered */
	/* Totals over all resources, see registrar.h; register_ns is that of the slowest resource. */
	uint64_t registrations, register_failures, register_ns;
	uint64_t watchers, slices, healthy_slices;                  /* totals over all resources */
	uint64_t disagreements, disagreements_ever, reattributions; /* see reconcile.h */
	uint64_t allocations, refused, allocate_ns; /* allocate_ns: total time of the calls */
};

/* Returns false if there is no plugin. */
bool plugin_figures(struct plugin *plugin, struct plugin_figures *ret);
