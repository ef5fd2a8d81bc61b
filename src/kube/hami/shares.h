/*
 * The shares of GPUs that a pod's containers get (annotations hami.io/vgpu-devices-to-allocate and -allocated). A share is
 * "UUID,NVIDIA,<MiB>,<cores>" followed by ':'. A container is its shares followed by ';', so a container without shares is only
 * ';'. Init containers come first.
 *
 * The parser is lenient. There may be more containers at the end than the pod has. The last ';' may be missing. A share may
 * have more fields at its end. A share without a UUID and with 0 MiB counts as none. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

#define SHARE_KIND_MAX 24

struct kube_share {
	size_t container; /* the number of ';' before the share */
	char card[KUBE_ID_MAX];
	char kind[SHARE_KIND_MAX]; /* the GPU's vendor: "NVIDIA" */
	uint64_t memory_mib;
	unsigned cores_pct;
	/*
	 * Percent of the GPU's time that the container may use while other tenants leave the GPU idle; 0 if cores_pct is not 0.
	 * Comes from another annotation (KUBE_BORROWED), not from the share's text.
	 */
	unsigned borrowed_pct;
};

struct kube_shares {
	size_t containers;
	size_t count;
	struct kube_share *share; /* in the order of containers; owned */
};

/* -EINVAL or -ERANGE (the error names container, share and field), or -ENOMEM. Free with shares_free(). */
int shares_parse(const char *text, struct kube_shares *ret, struct error *err);
/*
 * For a pod with this many containers, of which the first `init` are init containers. HAMi up to 2.8 leaves init containers out
 * of the text. So if the text has exactly as many containers as the pod has without init containers, those are meant.
 */
int shares_parse_of(const char *text, size_t init, size_t containers, struct kube_shares *ret,
		    struct error *err);
/* The caller frees the text; NULL if out of memory. */
char *shares_format(const struct kube_shares *shares);
void shares_free(struct kube_shares *shares);

/*
 * The value of KUBE_BORROWED, which has borrowed_pct in place of the cores. The caller frees the text; NULL if out of memory.
 */
char *shares_format_borrowed(const struct kube_shares *shares);
bool shares_have_borrowed(const struct kube_shares *shares);
/*
 * Returns the percent of GPU time that the share borrows, from `borrowed` (parsed from KUBE_BORROWED), by the share's
 * container, GPU and memory. 0 if the list has no such share, or if the share has guaranteed cores.
 */
unsigned shares_borrowed(const struct kube_shares *borrowed, const struct kube_share *share);

const struct kube_share *shares_of(const struct kube_shares *shares, size_t container,
				   size_t *ret_count);
void shares_erase(struct kube_shares *shares, size_t container);
bool shares_equal(const struct kube_share *a, size_t a_count, const struct kube_share *b,
		  size_t b_count);
