/* Errors quote what strangers wrote: they stay one line of text all the same. */
#pragma once

#include "base/error.h"
#include "base/text.h"

/* Returns `result`, so that it can be returned on; err may be NULL. */
static inline int blame(struct error *err, int result)
{
	if (err)
		text_clean(err->text);
	return result;
}
