/*
 * A CDI spec (the Container Device Interface, CNCF tag-runtime) of one device, from what a daemon says must be
 * injected. A file a device: of those that people make, DIR/allot-NAME.json has "allot.dev/gpu=NAME".
 *
 * Version 0.3.0 is the lowest that has all that is used, so that old engines take it (podman 4.3 knows 0.5.0
 * at most); a name that begins with a digit needs 0.5.0.
 */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/paths.h"

#define CDI_KIND "allot.dev/gpu" /* of those that people make */
#define CDI_DIR "/etc/cdi"       /* where every engine looks */

static inline void cleanup_spec_decref(json_t **json)
{
	json_decref(*json);
}
#define cleanup_spec cleanup(cleanup_spec_decref)

/* A tenant's name that is a device's too: it ends with a letter or digit. -EINVAL. Pure. */
int cdi_check_name(const char *name, struct error *err);

/*
 * Of the device KIND=NAME. `injection`: as in the daemon's reply to `claim`. -EPROTO: it is none; -ENOMEM. The caller owns
 * *ret. Pure.
 */
int cdi_spec_make(const char *kind, const char *name, const json_t *injection, json_t **ret,
		  struct error *err);

/* DIR/allot-NAME.json. -ENAMETOOLONG. Pure. */
int cdi_spec_path(const char *dir, const char *name, char ret_path[PATHS_MAX], struct error *err);

/* Makes the directory where only that is missing, and puts the file there whole. -errno. */
int cdi_spec_write(const char *dir, const char *path, const json_t *spec, struct error *err);
