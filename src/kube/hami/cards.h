/*
 * A node's cards as they are registered with a scheduler (annotation hami.io/node-nvidia-register): a JSON
 * array, or as old versions wrote it a text of `uuid,count,mem,core,type,numa,health[,index,mode]`, each
 * ended by ':'. What is false, 0 or empty is absent in JSON. Thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/annotations.h"

#define CARD_TYPE_MAX 128
#define CARD_MODE_MAX 32
#define CARD_MODE_DEFAULT "hami-core"

struct kube_card {
	char id[KUBE_ID_MAX];
	unsigned index;
	unsigned count;      /* of containers that may share it */
	uint64_t memory_mib; /* with scaling, more than it has */
	unsigned cores_pct;  /* with scaling, above 100 */
	char type[CARD_TYPE_MAX];
	unsigned numa;
	char mode[CARD_MODE_MAX];
	bool is_healthy;
	json_t *mig_profiles; /* an array, as it came; NULL: none. Freed with the list */
};

struct kube_cards {
	size_t count;
	struct kube_card *card; /* owned */
};

/* Of either form. -EINVAL or -ERANGE with card and field that are wrong; -ENOMEM. To be freed by
 * cards_free(). */
int cards_parse(const char *text, struct kube_cards *ret, struct error *err);
/* As JSON. NULL: no memory; to be freed by free(). */
char *cards_format(const struct kube_cards *cards);
/* Leaves an empty list. */
void cards_free(struct kube_cards *cards);

/* NVML's name of a card as schedulers know it: with "NVIDIA-" before it unless it begins with NVIDIA. */
void cards_type(const char *name, char type[CARD_TYPE_MAX]);
