#include "policy/lease/rules/turn_share.h"

#define LEAST_NS UINT64_C(1000000000) /* shorter turns count as this long */

void turn_share_observe(struct turn_share *s, bool is_here, bool has_work, uint64_t now_ns)
{
	uint64_t passed_ns = s->seen_ns ? now_ns - s->seen_ns : 0;
	if (is_here && !s->was_here) {
		s->last_here_ns = s->here_ns;
		s->here_ns = 0;
	} else if (!is_here && s->was_here) {
		s->away_ns = 0;
	}
	if (is_here)
		s->here_ns += passed_ns;
	else if (has_work)
		s->away_ns += passed_ns;
	s->was_here = is_here;
	s->seen_ns = now_ns;
}

double turn_share_scale(const struct turn_share *s)
{
	uint64_t turn_ns = s->here_ns > s->last_here_ns ? s->here_ns : s->last_here_ns;
	if (!s->was_here)
		return 1;
	if (turn_ns < LEAST_NS)
		turn_ns = LEAST_NS;
	return 1 + (double)s->away_ns / (double)turn_ns;
}
