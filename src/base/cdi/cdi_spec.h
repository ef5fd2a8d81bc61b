/*
 * Makes a CDI spec (Container Device Interface, CNCF tag-runtime) of one device from the daemon's reply to the request `claim`.
 * There is one file per device. For a device that `allot cdi` makes, DIR/allot-NAME.json defines "allot.dev/gpu=NAME".
 *
 * The spec states version 0.3.0, the lowest with all features used here, because old engines refuse newer versions (podman 4.3
 * knows 0.5.0 at most). If the name begins with a digit, the spec states 0.5.0, the first version that allows this.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/json.h"
#include "base/paths.h"

#define CDI_KIND "allot.dev/gpu" /* kind of the devices that allot cdi makes */
#define CDI_DIR "/etc/cdi"       /* every container engine reads this directory */

/* Checks that a tenant's name is also valid as a device name, which must end with a letter or digit. Pure. */
int cdi_check_name(const char *name, struct error *err);

/* `injection` is as in the daemon's reply to `claim`. -EPROTO if it is malformed. The caller owns *ret. Pure. */
int cdi_spec_make(const char *kind, const char *name, const json_t *injection, json_t **ret,
		  struct error *err);

/* Makes the path DIR/allot-NAME.json. -ENAMETOOLONG if it is too long. Pure. */
int cdi_spec_path(const char *dir, const char *name, char ret_path[PATHS_MAX], struct error *err);

/* Writes the file atomically. Creates `dir` if needed, but not its parents. */
int cdi_spec_write(const char *dir, const char *path, const json_t *spec, struct error *err);
