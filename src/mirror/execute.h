/*
 * Makes a planned mirror. It is made whole beside its place and then renamed there, so that nobody ever
 * sees half of it; an older mirror in that place changes places with it and is removed. Rolling back is
 * removing the directory: nothing outside of it is touched.
 */
#pragma once

#include "mirror/plan.h"

/*
 * Files are hard links where that can be, copies elsewhere. `place` must not exist, be empty, or be a
 * mirror (-EEXIST); its parent must exist. *ret_is_new false: the mirror there is the same already,
 * and was left alone, since containers may have it mounted.
 */
int mirror_execute(const struct mirror_plan *plan, const char *place, bool *ret_is_new,
		   struct error *err);
