#include "policy/space/space_gain.h"

void space_gain_see(const struct space_gain_seen *seen, size_t count, uint64_t dt_ns)
{
	double done_ns = 0, turns = 0;
	int there = 0, known = 0;

	for (size_t i = 0; i < count; i++) {
		done_ns += seen[i].done_ns;
		there += seen[i].is_there;
		known += seen[i].is_there && seen[i].is_known;
		turns += seen[i].is_there ? seen[i].turn : 0;
	}
	if (there < 2 || known < there)
		return;
	if (turns > 1)
		turns = 1;
	for (size_t i = 0; i < count; i++)
		if (seen[i].is_there) {
			seen[i].gain->done_ns += done_ns;
			seen[i].gain->turns_ns += turns * (double)dt_ns;
		}
}
