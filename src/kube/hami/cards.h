/*
 * A node's GPUs as registered with a scheduler (annotation hami.io/node-nvidia-register). The value is a JSON array, which
 * leaves out values that are false, 0 or empty. Old versions wrote text: `uuid,count,mem,core,type,numa,health[,index,mode]`
 * for each GPU, each followed by ':'. Thread safe.
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
	unsigned count;      /* how many containers may share the GPU */
	uint64_t memory_mib; /* more than the GPU has if its device plugin overcommits memory */
	unsigned cores_pct;  /* above 100 if the device plugin overcommits GPU time */
	char type[CARD_TYPE_MAX];
	unsigned numa;
	char mode[CARD_MODE_MAX];
	bool is_healthy;
	json_t *mig_profiles; /* the JSON array as received; NULL if none; freed with the list */
};

struct kube_cards {
	size_t count;
	struct kube_card *card; /* owned */
};

/* Parses the JSON or the old text. Errors name the GPU and the field. Free the list with cards_free(). */
int cards_parse(const char *text, struct kube_cards *ret, struct error *err);
/* Returns JSON, which the caller frees, or NULL if out of memory. */
char *cards_format(const struct kube_cards *cards);
/* Leaves an empty list. */
void cards_free(struct kube_cards *cards);

/* The type that schedulers expect: NVML's name, with "NVIDIA-" before it unless it begins with NVIDIA. */
void cards_type(const char *name, char type[CARD_TYPE_MAX]);
