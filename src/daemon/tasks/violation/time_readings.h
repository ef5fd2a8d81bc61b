/*
 * Finds tenants whose processes use more GPU time than the tenant was charged for (policy/safety/time_policy.h). A thread
 * reads the driver's samples of each card at moments that tenants can't predict; the main thread compares them with the
 * charges, and reports offenders (violations.h). The thread reads only while there are tenants.
 *
 * Known drivers (580) leave some busy processes out of the samples, and count their work for other processes. The samples look
 * the same if a tenant only claims to work, and is charged for the work of others. So time_weigh() subtracts from a tenant's
 * samples the charges of others that have no samples, but not the time for which the card worked beyond all charges. Cards with
 * tenants that run at the same time (space_groups.h) are left out: samples do not tell such tenants apart.
 */
#pragma once

#include "base/error.h"

struct node;
struct tenant;
struct time_readings;

/* Starts the thread. The backend, cards and violations must be open. */
int time_readings_start(struct node *node, struct time_readings **ret, struct error *err);
/* Stops the thread after the NVML call in progress. NULL is allowed; returns NULL. */
struct time_readings *time_readings_stop(struct time_readings *readings);
/*
 * Handler of the event tenant_added (subsystem.h). If violations are not only reported, refuses a new tenant with -EPERM for
 * half a minute after a violation by a tenant of the same owner. Otherwise a program that was ended could start again at once
 * in a new tenant.
 */
int time_readings_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
/* Handler of the event populated_changed (subsystem.h). */
void time_readings_populated_changed(struct node *node);
/* Call once a second while there are tenants. If a card is busy, wakes the thread, which sleeps while no card is busy. */
void time_readings_tick(struct node *node);
