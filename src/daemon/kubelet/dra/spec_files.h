/*
 * CDI specs of ResourceClaims, for container engines: DIR/allot.dev-claim_<uid>.json defines the device
 * allot.dev/claim=<uid>, which puts a container into the claim's tenant. Main thread only.
 */
#pragma once

#include "base/error.h"

#define DRA_CDI_KIND "allot.dev/claim"
#define DRA_CDI_ID_MAX 96

struct claim;
struct claims;

/* Makes the full name of the claim's CDI device. */
void spec_file_id(const char *uid, char ret_id[DRA_CDI_ID_MAX]);

/* Writes the spec of a claim that has a tenant. After -errno an older spec may remain. */
int spec_file_write(const char *dir, struct claims *claims, const struct claim *claim,
		    const char *uid, struct error *err);
/* Returns 0 also if there is no spec. */
int spec_file_remove(const char *dir, const char *uid, struct error *err);

/* Restores the specs of all ResourceClaims that have tenants: a reboot may have emptied `dir`. Logs failures. */
void spec_files_restore(const char *dir, struct claims *claims);
/* Removes specs of claims that are gone, and temporary files of a killed daemon. */
void spec_files_sweep(const char *dir, struct claims *claims);
