/*
 * The shares of GPUs that a pod's containers get (annotations hami.io/vgpu-devices-to-allocate and
 * -allocated). A share is "UUID,NVIDIA,<MiB>,<cores>" followed by ':'. A container is its shares
 * followed by ';', so a container without shares is only ';'. Init containers come first.
 *
 * The parser is lenient. There may be more containers at the end than the pod has. The last ';' may
 * be missing. A share may have more fields at its end. A share without a UUID and with 0 MiB counts
 * as none. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

#define SHARE_KIND_MAX 24

struct kube_share {
	size_t container; /* index of its container: the number of ';' before the share */
	char card[KUBE_ID_MAX];
	char kind[SHARE_KIND_MAX]; /* "NVIDIA" */
	uint64_t memory_mib;
	unsigned cores_pct;
	/*
	 * Share of the GPU's time that may be used while others leave it idle (KUBE_BORROWED);
	 * cores_pct is then 0. The text does not have this field.
	 */
	unsigned borrowed_pct;
};

struct kube_shares {
	size_t containers; /* the number of ';' */
	size_t count;
	struct kube_share *share; /* in the order of containers; owned */
};

/*
 * Parses the annotation's value. Returns -EINVAL or -ERANGE (the error names container, share and
 * field), or -ENOMEM. Free with shares_free().
 */
int shares_parse(const char *text, struct kube_shares *ret, struct error *err);
/*
 * As shares_parse, for a pod with `containers` containers, of which `init` are init containers.
 * HAMi's scheduler up to v2.8 leaves out init containers. So if the text has as many containers as
 * the pod has without them, the shares are moved to the containers that they are for.
 */
int shares_parse_of(const char *text, size_t init, size_t containers, struct kube_shares *ret,
		    struct error *err);
/* Returns the value as text, which the caller frees, or NULL if out of memory. */
char *shares_format(const struct kube_shares *shares);
void shares_free(struct kube_shares *shares);

/*
 * shares_format_borrowed makes the value of KUBE_BORROWED: borrowed_pct in place of the cores.
 * shares_borrow says whether any share borrows.
 */
char *shares_format_borrowed(const struct kube_shares *shares);
bool shares_borrow(const struct kube_shares *shares);
/*
 * Returns how much the share borrows according to the list `borrowed`; 0 if nothing, or if the list
 * has another share in its place.
 */
unsigned shares_borrowed(const struct kube_shares *borrowed, const struct kube_share *share);

/* Returns the first share of a container, and their number in *ret_count. */
const struct kube_share *shares_of(const struct kube_shares *shares, size_t container,
				   size_t *ret_count);
/* Removes the shares of a container. */
void shares_erase(struct kube_shares *shares, size_t container);
/* Whether both lists are equal. */
bool shares_equal(const struct kube_share *a, size_t a_count, const struct kube_share *b,
		  size_t b_count);
