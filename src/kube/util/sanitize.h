/* An error that quotes text from outside (users, other programs) must stay one line of printable text in a log. */
#pragma once

#include "base/error.h"
#include "base/text.h"

/* Replaces unprintable characters. Returns `result`. err may be NULL. */
static inline int error_sanitize(struct error *err, int result)
{
	if (err)
		text_clean(err->text);
	return result;
}
