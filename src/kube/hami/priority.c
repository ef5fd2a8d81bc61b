#include "kube/hami/priority.h"

#include <errno.h>

#include "base/parse.h"
#include "kube/util/sanitize.h"

enum { HAMI_HIGH = 0, HAMI_LOW = 1 };

int priority_read(const struct kube_pod *pod, size_t container, const char *resource, int *ret,
		  struct error *err)
{
	const char *text = pod_limit(pod, container, resource);
	int64_t level = HAMI_LOW;
	int r = text ? parse_int(text, HAMI_HIGH, HAMI_LOW, &level, err) : 0;
	if (r < 0)
		return error_sanitize(err, error_add(err, r, "limits: %.100s (0: high, 1: low)",
						     resource));
	*ret = level == HAMI_HIGH ? KUBE_PRIORITY_HIGH : 0;
	return 0;
}

const char *priority_env_text(int priority)
{
	return priority > 0 ? "0" : "1";
}
