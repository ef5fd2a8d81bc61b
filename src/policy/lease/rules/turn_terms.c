#include "policy/lease/rules/turn_terms.h"

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct turn_terms turn_terms_choose(const struct turn_terms *usual, const struct turn_terms *gang,
				    bool has_gang)
{
	if (!has_gang)
		return *usual;
	return (struct turn_terms){
		.quantum_ns = more(usual->quantum_ns, gang->quantum_ns),
		.quantum_min_ns = more(usual->quantum_min_ns, gang->quantum_min_ns),
		.depth_ns = more(usual->depth_ns, gang->depth_ns),
	};
}
