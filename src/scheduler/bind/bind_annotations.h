/* The objects that a binding writes, in HAMi's format: annotations, label, Binding, events' texts. Pure; thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/hami/pod.h"
#include "scheduler/bind/decision.h"

/*
 * Make request bodies: annotations before a binding and after a failed one, and the Binding. The caller frees the result; NULL
 * if memory runs out. The server answers 409 if the pod's version is not `version`. `shares`: the decision's, as text.
 */
char *bind_pod_patch(const struct decision *decision, const char *shares, int64_t now_s,
		     const char *version);
char *bind_failed_patch(const char *version);
char *bind_body(const struct decision *decision, const char *version);

/* Returns -ESTALE if `pod` is not the decision's pod, is bound elsewhere, being deleted or ended; `err` says which. */
int bind_check_pod(const struct decision *decision, const struct kube_pod *pod, struct error *err);
/* Whether the pod's annotations already name these shares and the decision's node. */
bool bind_is_annotated(const struct decision *decision, const char *shares,
		       const struct kube_pod *pod);

/* Reasons of events, as in HAMi. */
#define BIND_SUCCEED "BindingSucceed"
#define BIND_FAIL "BindingFailed"
void bind_success_text(const struct decision *decision, char *text, size_t size);
