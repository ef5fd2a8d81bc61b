/*
 * Makes a planned mirror. The mirror is made beside its place and then renamed, so that nobody ever sees
 * an incomplete mirror. An older mirror in that place is exchanged with the new mirror and then removed. To
 * roll back, remove the directory: nothing outside of the directory is changed.
 */
#pragma once

#include "mirror/plan.h"

/*
 * Hard-links files if possible, else copies them. The parent of `place` must exist. If `place` exists and is
 * neither empty nor a mirror, returns -EEXIST. If the present mirror is already the same, leaves it unchanged,
 * since containers may have it mounted, and sets *ret_is_new to false.
 */
int mirror_execute(const struct mirror_plan *plan, const char *place, bool *ret_is_new,
		   struct error *err);
