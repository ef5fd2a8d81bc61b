#include "daemon/export/metrics/metrics_names.h"

#include <errno.h>
#include <string.h>

int metrics_names_parse(const char *text, unsigned *ret_names, struct error *err)
{
	static const struct {
		const char *word;
		unsigned bit;
	} words[] = { { "hami", METRICS_NAMES_HAMI }, { "gpu-manager", METRICS_NAMES_GPU_MANAGER } };
	unsigned names = 0;
	if (!strcmp(text, "none")) {
		*ret_names = 0;
		return 0;
	}
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ","), i = 0;
		while (i < 2 &&
		       (strlen(words[i].word) != length || strncmp(words[i].word, at, length) != 0))
			i++;
		if (i == 2 || names & words[i].bit)
			return error_set(
				err, EINVAL,
				"'%.40s': must be none, hami, gpu-manager, or hami,gpu-manager",
				text);
		names |= words[i].bit;
		at += length;
		if (!*at)
			break;
	}
	*ret_names = names;
	return 0;
}
