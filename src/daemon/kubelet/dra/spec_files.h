/*
 * The CDI specs of ResourceClaims, for container engines: DIR/allot.dev-claim_<uid>.json has the device
 * allot.dev/claim=<uid>, which puts a container into the claim's tenant. Main thread only.
 */
#pragma once

#include "base/error.h"

#define DRA_CDI_KIND "allot.dev/claim"
#define DRA_CDI_ID_MAX 96

struct claim;
struct claims;

/* The device's full name. */
void spec_file_id(const char *uid, char ret_id[DRA_CDI_ID_MAX]);

/* Writes the spec of a claim that is in force, in place of one that is there. -errno, and there is none, or the old one. */
int spec_file_write(const char *dir, struct claims *claims, const struct claim *claim,
		    const char *uid, struct error *err);
/* No file is no error. -errno. */
int spec_file_remove(const char *dir, const char *uid, struct error *err);

/* Writes the specs of all claims in force again: a reboot may have emptied the directory. */
void spec_files_restore(const char *dir, struct claims *claims);
/* Removes those whose claims are gone, and what a daemon that was killed amid a write has left. */
void spec_files_sweep(const char *dir, struct claims *claims);
