#include "daemon/util/stamp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

static uint64_t read_clock_ns(clockid_t clock)
{
	struct timespec ts = { 0 };
	clock_gettime(clock, &ts);
	return ts.tv_sec < 0 ? 0 : (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

struct stamp stamp_now(void)
{
	struct stamp s = { .boot_ns = read_clock_ns(CLOCK_BOOTTIME),
			   .wall_ns = read_clock_ns(CLOCK_REALTIME) };
	cleanup_file FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!f || !fgets(s.boot, sizeof(s.boot), f))
		s.boot[0] = '\0';
	s.boot[strcspn(s.boot, "\n")] = '\0';
	return s;
}

bool stamp_is_same_boot(const struct stamp *a, const struct stamp *b)
{
	return a->boot[0] && !strcmp(a->boot, b->boot);
}

uint64_t stamp_passed_ns(const struct stamp *then, const struct stamp *now)
{
	bool same = stamp_is_same_boot(then, now);
	uint64_t from_ns = same ? then->boot_ns : then->wall_ns;
	uint64_t to_ns = same ? now->boot_ns : now->wall_ns;
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

json_t *stamp_to_json(const struct stamp *s)
{
	return json_pack("{s:s, s:I, s:I}", "boot", s->boot, "boot_ns", (json_int_t)s->boot_ns,
			 "wall_ns", (json_int_t)s->wall_ns);
}

int stamp_from_json(const json_t *json, struct stamp *ret, struct error *err)
{
	struct stamp s = { 0 };
	const char *boot = NULL;
	int64_t boot_ns = 0, wall_ns = 0;
	if (json_read_string(json, "boot", &boot, err) <= 0 || strlen(boot) >= sizeof(s.boot) ||
	    json_read_int(json, "boot_ns", 0, INT64_MAX, &boot_ns, err) <= 0 ||
	    json_read_int(json, "wall_ns", 0, INT64_MAX, &wall_ns, err) <= 0)
		return error_set(
			err, EINVAL,
			"written (the file's time stamp): boot, boot_ns or wall_ns is missing or "
			"invalid");
	strcpy(s.boot, boot);
	s.boot_ns = (uint64_t)boot_ns;
	s.wall_ns = (uint64_t)wall_ns;
	*ret = s;
	return 0;
}
