#include "policy/lease/rules/turn_terms.h"

#include "base/min.h"

struct turn_terms turn_terms_choose(const struct turn_terms *usual, const struct turn_terms *gang,
				    bool has_gang)
{
	if (!has_gang)
		return *usual;
	return (struct turn_terms){
		.quantum_ns = max_u64(usual->quantum_ns, gang->quantum_ns),
		.quantum_min_ns = max_u64(usual->quantum_min_ns, gang->quantum_min_ns),
		.depth_ns = max_u64(usual->depth_ns, gang->depth_ns),
	};
}
