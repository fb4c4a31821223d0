"""The Job controller: runs pods to completion, so many of them at a time.

Covers what scenarios use: completions, parallelism, backoffLimit, suspend; not indexed jobs nor
failure policies. Follows pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from typing import Final

from kube.values import Obj
from kubesim import pods
from kubesim.cluster import set_condition
from kubesim.controllers.workloads import WorkloadController
from kubesim.store import clone, name_of, retain_items, uid_of

TRACKING: Final = "batch.kubernetes.io/job-tracking"


class JobController(WorkloadController):
    """Reconciles Jobs."""

    kind = "Job"
    component = "job-controller"

    def sync(self) -> None:
        """Look once at all jobs, and at pods that lost theirs."""
        super().sync()
        for pod in self._store.all("Pod"):
            if TRACKING in (pod["metadata"].get("finalizers") or []) and not self._has_job(pod):
                self._store.modify(pod, _untrack)

    def _has_job(self, pod: Obj) -> bool:
        for owner in pod["metadata"].get("ownerReferences") or []:
            job = self._store.by_uid(owner["uid"])
            if job is not None and not pods.is_deleted(job):
                return True
        return False

    def reconcile(self, job: Obj) -> None:
        """Make and delete pods of a Job, and count those that have ended."""
        status, spec = clone(job["status"]), job["spec"]
        if any(c["type"] in {"Complete", "Failed"} for c in status.get("conditions") or []):
            return
        now = self._cluster.clock.format_timestamp()
        status.setdefault("startTime", now)
        owned = self.list_owned(job)
        for pod in owned:
            if TRACKING not in (pod["metadata"].get("finalizers") or []):
                continue
            if pods.is_finished(pod):
                field = "succeeded" if pod["status"]["phase"] == "Succeeded" else "failed"
                status[field] = status.get(field, 0) + 1
                self._store.modify(pod, _untrack)
        active = [pod for pod in owned if pods.is_active(pod)]
        active_pods_wanted = self._count_active_pods_wanted(spec, status)
        if status.get("failed", 0) > spec["backoffLimit"]:
            self._finish(job, status, "FailureTarget", "Failed", now)
            active_pods_wanted = 0
        elif spec.get("completions") and status.get("succeeded", 0) >= spec["completions"]:
            self._finish(job, status, "SuccessCriteriaMet", "Complete", now)
            active_pods_wanted = 0
        active = self.manage_replicas(
            job, active, active_pods_wanted, labels=_labels(job), finalizers=[TRACKING]
        )
        status["active"] = len(active)
        status["ready"] = sum(1 for pod in active if pod["status"].get("phase") == "Running")
        if not active:
            del status["active"]
        status.setdefault("terminating", 0)
        status.setdefault("uncountedTerminatedPods", {})
        self._store.replace({**clone(job), "spec": _with_selector(job), "status": status})

    def _count_active_pods_wanted(self, spec: Obj, status: Obj) -> int:
        """Return how many pods should be active."""
        if spec.get("suspend"):
            return 0
        parallelism = int(spec["parallelism"])
        if spec.get("completions") is None:
            return 0 if status.get("succeeded") else parallelism
        missing = int(spec["completions"]) - int(status.get("succeeded", 0))
        return max(0, min(parallelism, missing))

    def _finish(self, job: Obj, status: Obj, criterion: str, outcome: str, now: str) -> None:
        if outcome == "Complete":
            reason, message = "CompletionsReached", "Reached expected number of succeeded pods"
            status["completionTime"] = now
            self.record_event(job, "Completed", "Job completed")
        else:
            reason = "BackoffLimitExceeded"
            message = "Job has reached the specified backoff limit"
            self.record_event(job, reason, message, "Warning")
        for name in (criterion, outcome):
            condition = {
                "type": name,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastProbeTime": now,
            }
            set_condition(status, condition, now)


def _labels(job: Obj) -> dict[str, str]:
    return {
        "batch.kubernetes.io/controller-uid": uid_of(job),
        "batch.kubernetes.io/job-name": name_of(job),
        "controller-uid": uid_of(job),
        "job-name": name_of(job),
    }


def _with_selector(job: Obj) -> Obj:
    """Return the spec as the API server completes it: the selector and the template's labels."""
    spec: Obj = clone(job["spec"])
    uid = uid_of(job)
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    meta = spec["template"].setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), **_labels(job)}
    return spec


def _untrack(pod: Obj) -> None:
    retain_items(pod["metadata"], "finalizers", lambda name: name != TRACKING)
