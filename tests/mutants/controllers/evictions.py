"""Defects of evictions: who, when, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as changed

from kube.slices import results_of
from kube.values import Obj
from kubesim import pods
from kubesim.controllers.eviction import EvictionController, RuleReporter
from kubesim.controllers.evictor import Eviction, Evictor
from kubesim.scheduling.binding import Binder
from kubesim.store import uid_of
from kubesim.world import World
from reference_allocator.api import DeviceId
from tests.mutants.replacing import Defects, Mutation, instead, part, replace


@instead(Binder.reserve_claim)
def negative_seconds_have_no_end(
    _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
) -> Obj:
    for result in ((allocation or {}).get("devices") or {}).get("results") or []:
        for toleration in result.get("tolerations") or []:
            if toleration.get("tolerationSeconds", 0) < 0:
                del toleration["tolerationSeconds"]
    return original(pod, claim, allocation)


Original = Callable[[Evictor, Obj], list[Eviction]]


def evictions(change: Callable[[Original, Evictor, Obj], list[Eviction]]) -> Mutation:
    return lambda world: replace(part(world, EvictionController).list_evictions, change)


def last_taint(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """Of several taints the one counts that is tolerated longest."""
    found = original(evictor, pod)
    return [max(found, key=lambda eviction: eviction.when)] if found else []


def first_device(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """Of a claim only the first device is looked at."""

    class First(Evictor):
        def _list_device_evictions(self, result: Obj) -> Iterator[Eviction]:
            for _, claim in self.cluster.claims_of(pod):
                if claim is not None and result in results_of(claim)[1:]:
                    return
            yield from super()._list_device_evictions(result)

    return original(First(evictor.cluster, evictor.published, evictor.rules), pod)


def tolerated_by(change: Callable[[list[Obj]], list[Obj]]) -> Mutation:
    """Tolerations are read in another way."""

    class Reading(Evictor):
        def _list_device_evictions(self, result: Obj) -> Iterator[Eviction]:
            tolerations = change(result.get("tolerations") or [])
            yield from super()._list_device_evictions({**result, "tolerations": tolerations})

    return evictions(
        lambda original, evictor, pod: original(
            Reading(evictor.cluster, evictor.published, evictor.rules), pod
        )
    )


def zero_is_for_ever(tolerations: list[Obj]) -> list[Obj]:
    return [
        {k: v for k, v in one.items() if k != "tolerationSeconds" or v > 0} for one in tolerations
    ]


def every_effect_counts(tolerations: list[Obj]) -> list[Obj]:
    return [{**one, "effect": "NoExecute"} if one.get("effect") else one for one in tolerations]


def sign_is_lost(tolerations: list[Obj]) -> list[Obj]:
    return [
        {k: abs(v) if k == "tolerationSeconds" else v for k, v in one.items()}
        for one in tolerations
    ]


def longest(tolerations: list[Obj]) -> list[Obj]:
    bounded = [one for one in tolerations if "tolerationSeconds" in one]
    most = max(bounded, key=lambda one: int(one["tolerationSeconds"]), default=None)
    return [one for one in tolerations if one not in bounded or one is most]


def selecting(*forgotten: str) -> Mutation:
    """Rules evict from more devices than they select."""

    def widened(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
        rules = []
        for rule in evictor.rules:
            selector = rule["spec"].get("deviceSelector")
            if selector is not None and "device" in selector:
                selector = {k: v for k, v in selector.items() if k not in forgotten}
            rules.append({**rule, "spec": {**rule["spec"], "deviceSelector": selector}})
        return original(changed(evictor, rules=rules), pod)

    return evictions(widened)


def needs_published_devices(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """A rule evicts from published devices only."""
    names = {
        DeviceId(item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"])
        for item in evictor.cluster.store.all("ResourceSlice")
        for device in item["spec"].get("devices") or []
    }

    class Published(Evictor):
        def _list_device_evictions(self, result: Obj) -> Iterator[Eviction]:
            if DeviceId(result["driver"], result["pool"], result["device"]) in names:
                yield from super()._list_device_evictions(result)

    return original(Published(evictor.cluster, evictor.published, evictor.rules), pod)


def remembers(world: World) -> None:
    """A pod that was to be evicted later is evicted, though the taint is gone by then."""
    seen: dict[str, list[Eviction]] = {}

    def remember(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
        found = original(evictor, pod)
        if found:
            seen[uid_of(pod)] = found
        return [] if pods.is_deleted(pod) else found or seen.get(uid_of(pod), [])

    controller = part(world, EvictionController)
    evictions(remember)(world)

    def sync(original: Callable[[], None]) -> None:
        original()
        for pod in world.cluster.store.all("Pod"):
            due = seen.get(uid_of(pod))
            if due and not pods.is_deleted(pod) and due[0].when <= world.cluster.clock.now:
                controller._evict(pod, due)

    replace(controller.sync, sync)


@instead(EvictionController._evict)
def without_condition(
    world: World, _: Callable[..., None], pod: Obj, found: list[Eviction]
) -> None:
    """No condition of a pod tells of its eviction."""
    controller = part(world, EvictionController)
    controller._event(pod, "Marking for deletion")
    controller._evicted.update({uid_of(one.rule) for one in found if one.rule is not None})
    world.api.delete_stored(pod)


def says(change: Callable[[Obj, Obj], None]) -> Mutation:
    """Something is wrong in the condition of a rule; told the condition and the rule."""

    @instead(RuleReporter.build_condition)
    def mutate(_: World, original: Callable[[Obj], Obj], rule: Obj) -> Obj:
        said = original(rule)
        change(said, rule)
        return said

    return mutate


def always_in_progress(said: Obj, rule: Obj) -> None:
    if rule["spec"]["taint"]["effect"] == "NoExecute":
        said["status"] = "True"


def forgets_evicted(said: Obj, _: Obj) -> None:
    if said["reason"] == "Completed":
        said.update(reason="NotStarted", message="")


def first_generation(world: World) -> None:
    """What is said of a rule is not said anew when the rule changes."""
    reporter = part(world, EvictionController).reporter

    def with_(original: Callable[[Obj, Obj], Obj], rule: Obj, said: Obj) -> Obj:
        known = rule["status"].get("conditions") or []
        return rule if known else original(rule, said)

    replace(reporter._set_rule_condition, with_)


@instead(EvictionController.list_evictions)
def evicts_at_once(
    _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
) -> list[Eviction]:
    return [changed(eviction, when=0.0) for eviction in original(evictor, pod)]


@instead(EvictionController.list_evictions)
def evicts_who_tolerates_for_ever(
    _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
) -> list[Eviction]:
    tolerated = [
        toleration
        for _, claim in evictor.cluster.claims_of(pod)
        if claim is not None
        for result in results_of(claim)
        for toleration in result.get("tolerations") or []
        if "tolerationSeconds" not in toleration
    ]
    rule = evictor.rules[0] if evictor.rules else None
    return [Eviction(0.0, rule)] if tolerated else original(evictor, pod)


def only_by(kept: Callable[[Eviction], bool]) -> Mutation:
    """Pods are evicted for some reasons only."""

    @instead(EvictionController.list_evictions)
    def mutate(
        _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
    ) -> list[Eviction]:
        return [eviction for eviction in original(evictor, pod) if kept(eviction)]

    return mutate


@instead(EvictionController.list_evictions)
def by_named_claims_only(
    _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
) -> list[Eviction]:
    return list(original(evictor, pod)) if pod["spec"].get("resourceClaims") else []


def as_created(eviction: Eviction) -> bool:
    return eviction.rule is None or eviction.rule["metadata"].get("generation", 1) == 1


@instead(RuleReporter.build_condition)
def no_dry_run(_: World, original: Callable[[Obj], Obj], rule: Obj) -> Obj:
    if rule["spec"]["taint"]["effect"] != "None":
        return original(rule)
    message = "Eviction only happens for the NoExecute effect."
    return {"status": "False", "reason": "OtherEffect", "message": message}


def whoever_names_the_claim(_: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """A pod need not be among the consumers of a claim to go because of its devices."""
    if not pod["spec"].get("nodeName") or pods.is_deleted(pod):
        return []
    named = (claim for _, claim in evictor.cluster.claims_of(pod))
    return [
        eviction
        for claim in (*named, evictor.cluster.extended_claim_of(pod))
        if claim is not None
        for result in results_of(claim)
        for eviction in evictor._list_device_evictions(result)
    ]


def whoever_goes_already(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """A pod that is being deleted is evicted all the same."""
    conditions = pod["status"].get("conditions") or []
    if any(condition["type"] == "DisruptionTarget" for condition in conditions):
        return original(evictor, pod)
    meta = {k: v for k, v in pod["metadata"].items() if k != "deletionTimestamp"}
    return original(evictor, {**pod, "metadata": meta})


def counts_from_first_sight(world: World) -> None:
    """The time for which a taint is tolerated begins when the controller sees the taint."""
    seen: dict[str, str] = {}

    def begin_now(taint: Obj) -> Obj:
        now = world.cluster.clock.format_timestamp()
        return {**taint, "timeAdded": seen.setdefault(repr(sorted(taint.items())), now)}

    def mutate(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
        published = {
            device: [*map(begin_now, taints)] for device, taints in evictor.published.items()
        }
        rules = [
            {**rule, "spec": {**rule["spec"], "taint": begin_now(rule["spec"]["taint"])}}
            for rule in evictor.rules
        ]
        return original(changed(evictor, published=published, rules=rules), pod)

    evictions(mutate)(world)


def rules_have_no_patience(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """The time for which a taint is tolerated counts where a driver has published the taint."""
    return [
        eviction if eviction.rule is None else changed(eviction, when=0.0)
        for eviction in original(evictor, pod)
    ]


@instead(EvictionController._evict)
def counts_one_pod(
    world: World, original: Callable[..., None], pod: Obj, found: list[Eviction]
) -> None:
    original(pod, found)
    evicted = part(world, EvictionController)._evicted
    evicted.update({uid: 1 - evicted[uid] for uid in evicted})


def silent_about(message: str) -> Mutation:
    """No event tells of something."""

    @instead(EvictionController._event)
    def mutate(_: World, original: Callable[[Obj, str], None], pod: Obj, said: str) -> None:
        if said != message:
            original(pod, said)

    return mutate


def selector_is_read(read: Callable[[Obj | None], Obj | None]) -> Mutation:
    """Which devices a rule selects is read in another way."""

    def as_read(rule: Obj) -> Obj:
        return {
            **rule,
            "spec": {**rule["spec"], "deviceSelector": read(rule["spec"].get("deviceSelector"))},
        }

    def evict(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
        return original(changed(evictor, rules=[*map(as_read, evictor.rules)]), pod)

    @instead(RuleReporter.build_condition)
    def report(_: World, original: Callable[[Obj], Obj], rule: Obj) -> Obj:
        return original(as_read(rule))

    def mutate(world: World) -> None:
        evictions(evict)(world)
        report(world)

    return mutate


def _of_every_generation(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """A taint evicts whatever the generation of the slice that has it."""
    published: dict[DeviceId, list[Obj]] = {}
    for item in evictor.cluster.store.all("ResourceSlice"):
        spec = item["spec"]
        for device in spec.get("devices") or []:
            found = [t for t in device.get("taints") or [] if t["effect"] == "NoExecute"]
            name = DeviceId(spec["driver"], spec["pool"]["name"], device["name"])
            published.setdefault(name, []).extend(found)
    return original(Evictor(evictor.cluster, published, evictor.rules), pod)


DEFECTS: Defects = {
    "negative-seconds-count-as-positive": tolerated_by(sign_is_lost),
    "negative-seconds-have-no-end": negative_seconds_have_no_end,
    "claims-are-evicted-by-their-first-device": evictions(first_device),
    "evicts-after-taints-are-gone": remembers,
    "evicts-when-the-last-taint-is-not-tolerated": evictions(last_taint),
    "evicts-without-condition": without_condition,
    "rules-evict-from-published-devices-only": evictions(needs_published_devices),
    "rules-evict-from-whole-pools": selecting("device"),
    "rules-evict-in-all-pools": selecting("pool"),
    "rules-evict-of-all-drivers": selecting("driver"),
    "rules-forget-whom-they-evicted": says(forgets_evicted),
    "rules-stay-in-progress": says(always_in_progress),
    "says-of-changed-rules-what-was": first_generation,
    "tolerations-of-any-effect-delay-evictions": tolerated_by(every_effect_counts),
    "the-longest-toleration-counts": tolerated_by(longest),
    "zero-seconds-tolerate-for-ever": tolerated_by(zero_is_for_ever),
    "evicts-by-named-claims-only": by_named_claims_only,
    "misses-changed-rules": only_by(as_created),
    "cancels-evictions-silently": silent_about("Cancelling deletion"),
    "evicts-silently": silent_about("Marking for deletion"),
    "evicts-deleted-pods-again": evictions(whoever_goes_already),
    "evicts-who-has-not-reserved": evictions(whoever_names_the_claim),
    "rules-count-one-evicted-pod": counts_one_pod,
    "rules-are-tolerated-for-no-time": evictions(rules_have_no_patience),
    "rules-of-nobody-are-of-everybody": selector_is_read(lambda selector: selector or {}),
    "rules-of-everybody-are-of-nobody": selector_is_read(lambda selector: selector or None),
    "taints-count-from-when-they-are-seen": counts_from_first_sight,
    "evicts-at-once": evicts_at_once,
    "evicts-who-tolerates-for-ever": evicts_who_tolerates_for_ever,
    "no-dry-run": no_dry_run,
    "evicts-for-old-generations": evictions(_of_every_generation),
}
