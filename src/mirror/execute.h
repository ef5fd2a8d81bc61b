/*
 * Makes a mirror (plan.h): a directory with the driver's libraries. Builds the mirror in a directory beside its place, then
 * renames that directory, so that no program sees an incomplete mirror. An older mirror is exchanged with the new one and
 * removed. To undo everything, remove the mirror's directory; nothing else is changed.
 */
#pragma once

#include "mirror/plan.h"

/*
 * Makes the mirror at `place`, whose parent must exist. Files are hard-linked if possible, else copied. Returns -EEXIST if
 * `place` exists and is neither an empty directory nor a mirror, -EBUSY if `place` is a mount point. If an equal mirror is
 * there already, it stays, because containers may have it mounted; *ret_is_new is then false.
 */
int mirror_execute(const struct mirror_plan *plan, const char *place, bool *ret_is_new,
		   struct error *err);
