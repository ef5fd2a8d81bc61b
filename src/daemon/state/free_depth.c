#include "daemon/state/free_depth.h"

#include "daemon/state/tenant.h"

void free_depth_publish(struct node *node)
{
	unsigned present[NODE_MAX_CARDS] = { 0 };
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; t->process_count && i < t->terms.device_count; i++)
			present[t->terms.device[i].card->index]++;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			unsigned others = present[t->terms.device[i].card->index] -
					  (t->process_count > 0);
			atomic_store_explicit(&t->region.control->device[i].free_depth_ns,
					      others ? node->config.free_depth_ns
						     : node->config.free_depth_alone_ns,
					      memory_order_seq_cst);
		}
}
