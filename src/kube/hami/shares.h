/*
 * The shares of cards that a pod's containers are given (annotations hami.io/vgpu-devices-to-allocate and
 * -allocated): each share "UUID,NVIDIA,<MiB>,<cores>" and ':', each container's shares and ';', init
 * containers before the others; a container without any is ';' alone. There may be more of those at the
 * end than the pod has containers. The last ';' may be missing, a share may have more fields behind these, and one
 * without a UUID and of 0 MiB is none. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

#define SHARE_KIND_MAX 24

struct kube_share {
	size_t container; /* whose it is: the number of ';' before it */
	char card[KUBE_ID_MAX];
	char kind[SHARE_KIND_MAX]; /* "NVIDIA" */
	uint64_t memory_mib;
	unsigned cores_pct;
	/* In place of cores_pct, which is 0: to be used while others leave it (KUBE_BORROWED). Not in the text. */
	unsigned borrowed_pct;
};

struct kube_shares {
	size_t containers; /* the number of ';' */
	size_t count;
	struct kube_share *share; /* in the containers' order; owned */
};

/* -EINVAL or -ERANGE with container, share and field that are wrong; -ENOMEM. To be freed by shares_free(). */
int shares_parse(const char *text, struct kube_shares *ret, struct error *err);
/*
 * The same of a pod with so many containers of both kinds, `init` of them init containers. HAMi's scheduler up to v2.8 leaves
 * these out: where just as many are named as the pod has others, these are meant, and they get their places.
 */
int shares_parse_of(const char *text, size_t init, size_t containers, struct kube_shares *ret,
		    struct error *err);
/* NULL: no memory; to be freed by free(). */
char *shares_format(const struct kube_shares *shares);
void shares_free(struct kube_shares *shares);

/* The same with what is borrowed in place of the cores: KUBE_BORROWED. */
char *shares_format_borrowed(const struct kube_shares *shares);
bool shares_borrow(const struct kube_shares *shares);
/* What a share borrows, by such a list. 0: nothing, or it is another share by now. */
unsigned shares_borrowed(const struct kube_shares *borrowed, const struct kube_share *share);

/* The shares of a container: where they begin, and how many. */
const struct kube_share *shares_of(const struct kube_shares *shares, size_t container,
				   size_t *ret_count);
/* Takes a container's shares away: it becomes one without any. */
void shares_erase(struct kube_shares *shares, size_t container);
/* Are both lists the same? */
bool shares_equal(const struct kube_share *a, size_t a_count, const struct kube_share *b,
		  size_t b_count);
