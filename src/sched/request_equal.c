/* Do two pods ask for the same? */
#include <string.h>

#include "sched/request.h"

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool are_same_words(const struct place_words *a, const struct place_words *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->word[i], b->word[i]) != 0)
			return false;
	return true;
}

static bool are_same_amounts(const struct place_request *a, const struct place_request *b)
{
	return a->count == b->count && a->memory == b->memory &&
	       a->memory_bytes == b->memory_bytes && a->memory_pct == b->memory_pct &&
	       a->cores_mpct == b->cores_mpct;
}

static bool are_same_wishes(const struct place_request *a, const struct place_request *b)
{
	if (a->policy != b->policy || a->numa_bind != b->numa_bind ||
	    a->evaluator_count != b->evaluator_count || a->has_weights != b->has_weights ||
	    a->weights.slots != b->weights.slots || a->weights.cores != b->weights.cores ||
	    a->weights.memory != b->weights.memory)
		return false;
	for (unsigned i = 0; i < a->evaluator_count; i++)
		if (!is_same_text(a->evaluator[i], b->evaluator[i]))
			return false;
	return are_same_words(&a->use_uuid, &b->use_uuid) &&
	       are_same_words(&a->nouse_uuid, &b->nouse_uuid) &&
	       are_same_words(&a->must_uuid, &b->must_uuid) &&
	       are_same_words(&a->use_type, &b->use_type) &&
	       are_same_words(&a->nouse_type, &b->nouse_type);
}

bool request_is_equal(const struct request *a, const struct request *b)
{
	if (a->containers != b->containers || a->count != b->count ||
	    a->is_node_spread != b->is_node_spread || a->is_mutex != b->is_mutex ||
	    !is_same_text(a->mode, b->mode))
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct request_part *x = &a->part[i], *y = &b->part[i];
		if (x->container != y->container || x->is_init != y->is_init ||
		    x->is_sidecar != y->is_sidecar || !are_same_amounts(&x->place, &y->place) ||
		    !are_same_wishes(&x->place, &y->place))
			return false;
	}
	return true;
}
