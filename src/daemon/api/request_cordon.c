#include <errno.h>

#include "daemon/api/request_devices.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/gpu/health/health.h"

static int find_card(struct node *node, const json_t *request, struct card **ret, struct error *err)
{
	const char *text = NULL;
	int r = json_read_string(request, "uuid", &text, err);
	if (r < 0)
		return r;
	if (r > 0) {
		*ret = node_find_card_text(node, text);
		return *ret ? 0
			    : error_set(err, ENODEV,
					"uuid: '%.60s': no such GPU: allot ps lists them", text);
	}
	r = request_read_index(node, request, ret, err);
	return r ? r : error_set(err, EINVAL, "index or uuid: one of them must be given");
}

int request_cordon(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct node *node = session->node;
	struct card *card = NULL;
	bool cordoned = true;
	int r = find_card(node, request, &card, err);
	if (r >= 0)
		r = json_read_bool(request, "cordoned", &cordoned, err);
	if (r < 0)
		return r;
	if (!session->is_admin && !node->is_private)
		return error_set(err, EPERM,
				 "GPU %u: only root and members of group allot may %s it",
				 card->index, cordoned ? "cordon" : "uncordon");
	return cordon_set(node, card, cordoned, err);
}
