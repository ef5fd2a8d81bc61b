/*
 * The content that a binding writes, in HAMi's format: annotations and label of the pod, the Binding, and the texts of events.
 * Pure; thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/hami/pod.h"
#include "scheduler/bind/decision.h"

/*
 * Make the bodies of requests: a pod's annotations when it is bound, those when its binding has failed, and the Binding. The
 * caller frees the result; NULL if memory runs out. `version` is the pod's version that was read; if the pod has changed since,
 * the server rejects the request with 409. `shares` is the decision's shares as text.
 */
char *bind_pod_patch(const struct decision *decision, const char *shares, int64_t now_s,
		     const char *version);
char *bind_failed_patch(const char *version);
char *bind_body(const struct decision *decision, const char *version);

/* Returns 0 if `pod` is the pod of the decision and may still be bound. Otherwise -ESTALE; err says what differs. */
int bind_check_pod(const struct decision *decision, const struct kube_pod *pod, struct error *err);
/* Returns true if the pod's annotations already name exactly these shares of the decision's node. */
bool bind_is_said(const struct decision *decision, const char *shares, const struct kube_pod *pod);

/* Reasons of events, as in HAMi. */
#define BIND_SUCCEED "BindingSucceed"
#define BIND_FAIL "BindingFailed"
void bind_success_text(const struct decision *decision, char *text, size_t size);
