/*
 * Makes a planned mirror. The mirror is made in a directory beside its place and then renamed, so that nobody ever sees an
 * incomplete mirror. If there is an older mirror, the two are exchanged, and the older one is removed. To undo everything,
 * remove the mirror's directory: nothing outside of it is changed.
 */
#pragma once

#include "mirror/plan.h"

/*
 * Makes the mirror at `place`, whose parent must exist. Hard-links files if possible, and copies them otherwise. If `place`
 * exists and is neither empty nor a mirror, returns -EEXIST. If it already has the same mirror, leaves it unchanged, because
 * containers may have it mounted, and sets *ret_is_new to false.
 */
int mirror_execute(const struct mirror_plan *plan, const char *place, bool *ret_is_new,
		   struct error *err);
