#include "day.h"

bool day_ours(const struct place_node *node, const struct day_kind *kind, struct place_choice *ret)
{
	struct place_request request = day_request(node, kind);

	return place_choose(node, &request, ret) == 0;
}
