#include <string.h>

#include "cli/doctor/judge/judge.h"

#define DRIVER "gpu.allot.dev"

static void judge_registration(const struct facts_dra *d, struct findings *f)
{
	if (d->has_socket == FACT_NO || d->we_answer == FACT_NO)
		finding_set_remedy(
			findings_add(f, FINDING_PROBLEM, "dra",
				     "kube_dra is on, and %s: pods with claims of " DRIVER " wait",
				     d->has_socket == FACT_NO
					     ? "there is no socket of " DRIVER " in kube_dra_dir"
					     : "no process listens at the socket of " DRIVER),
			"start allotd, as root, with kube_dra_dir = the kubelet's "
			"plugins_registry; in a pod, mount that directory (not the socket)");
	else if (d->is_known && !d->is_registered)
		finding_set_remedy(
			findings_add(f, FINDING_PROBLEM, "dra",
				     "the kubelet has not registered " DRIVER
				     ": pods with claims of it wait"),
			"look for 'DRA' in allotd's log, and for 'plugin' in the kubelet's; "
			"kube_dra_dir must be the kubelet's plugins_registry, and the kubelet 1.34 "
			"or newer");
	else
		findings_add(f, FINDING_OK, "dra", DRIVER "%s",
			     d->is_known ? " is registered with the kubelet"
					 : ": allotd listens for the kubelet");
}

static void judge_slice(const struct facts_dra *d, struct findings *f)
{
	if (!d->devices)
		finding_set_remedy(
			findings_add(f, FINDING_PROBLEM, "dra-slice",
				     "no ResourceSlice lists this node's GPUs: the scheduler places "
				     "no claims here"),
			"look for 'published' in allotd's log: allotd must find the Node it runs "
			"on, and must be allowed to create, update and delete resourceslices");
	else if (!d->is_shared)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "dra-slice",
				"%u GPU%s in ResourceSlices, but a claim gets a whole GPU, never a part",
				d->devices, d->devices == 1 ? "" : "s"),
			"parts need the feature gate DRAConsumableCapacity of kube-apiserver and "
			"kube-scheduler, on by default from Kubernetes 1.36");
	else if (d->tainted)
		finding_set_remedy(
			findings_add(
				f, FINDING_NOTE, "dra-slice",
				"%u GPU%s in ResourceSlices, %u with a taint, which get no new claims",
				d->devices, d->devices == 1 ? "" : "s", d->tainted),
			"kubectl get resourceslices -o yaml has the taints; allot uncordon takes a "
			"cordon away");
	else
		findings_add(f, FINDING_OK, "dra-slice", "%u GPU%s in ResourceSlices", d->devices,
			     d->devices == 1 ? "" : "s");
}

static void judge_right(const char *fault, const char *resource, const char *what,
			struct findings *f)
{
	if (fault[0])
		finding_set_remedy(
			findings_add(f, FINDING_WARNING, "dra-rights", "%s can't be read: %s",
				     resource, fault),
			"allow the daemon's service account to %s, as the ClusterRole of allot's chart does",
			what);
}

void judge_dra(const struct facts *facts, struct findings *f)
{
	const struct facts_dra *d = &facts->dra;

	if (!d->is_wanted)
		return;
	judge_registration(d, f);
	if (!d->is_asked)
		return;
	if (!d->has_api) {
		finding_set_remedy(findings_add(f, FINDING_PROBLEM, "dra-slice",
						"the API server knows no resource.k8s.io/v1"),
				   "Kubernetes 1.34 or newer is needed, or kube-apiserver with "
				   "--runtime-config=resource.k8s.io/v1=true");
		return;
	}
	judge_right(d->slices_fault, "ResourceSlices",
		    "list, watch, create, update and delete resourceslices", f);
	judge_right(d->claims_fault, "ResourceClaims", "get resourceclaims", f);
	if (!d->slices_fault[0])
		judge_slice(d, f);
	if (d->has_class == FACT_NO)
		finding_set_remedy(findings_add(f, FINDING_WARNING, "dra-class",
						"there is no DeviceClass " DRIVER),
				   "the chart makes it (dra.classes); claims must name a class that "
				   "selects the driver " DRIVER);
}
