"""Requests that an API server refuses, one for each rule that the reference has to know.

What a real API server answers to each is recorded in refusals.json (see record.py).
"""

from __future__ import annotations

from typing import Any

NAMESPACE = "refusals"
LONG = "a" * 64


def pod(*claims: Any, resources: Any = None, **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "x"}
    if resources is not None:
        container["resources"] = resources
    full: dict[str, Any] = {"containers": [container], **spec}
    if claims:
        full["resourceClaims"] = list(claims)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": full}


def claim(*requests: Any, version: str = "v1", **devices: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def request(name: str = "r", **exactly: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def template(*requests: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": claim(*requests)["spec"]},
    }


def device_class(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "refused"},
        "spec": spec,
    }


def selecting(expression: str, **more: Any) -> dict[str, Any]:
    return claim(request(selectors=[{"cel": {"expression": expression}}], **more))


def taint_rule(version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "refused"},
        "spec": {"deviceSelector": {"driver": "refused.example.com"}, **spec},
    }


def resource_slice(*devices: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "refused"},
        "spec": {
            "driver": "d.example.com",
            "pool": {"name": "p", "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": list(devices),
            **spec,
        },
    }


def job(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x"}], **spec}}},
    }


def opaque(driver: str = "d.example.com", parameters: Any = None) -> dict[str, Any]:
    return {"opaque": {"driver": driver, "parameters": parameters}}


CASES: dict[str, dict[str, Any]] = {
    # Pod claims
    "pod claim with neither name": pod({"name": "g"}),
    "pod claim with both names": pod(
        {"name": "g", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}
    ),
    "pod claim without a name": pod({"resourceClaimName": "a"}),
    "pod claim twice": pod(
        {"name": "g", "resourceClaimName": "a"}, {"name": "g", "resourceClaimName": "b"}
    ),
    "pod claim with a bad name": pod({"name": "G", "resourceClaimName": "a"}),
    "pod claim that names a claim badly": pod({"name": "g", "resourceClaimName": "A_b"}),
    "pod claim that names a template badly": pod({"name": "g", "resourceClaimTemplateName": "-x"}),
    "container claim unknown, none there": pod(resources={"claims": [{"name": "g"}]}),
    "container claim unknown, others there": pod(
        {"name": "h", "resourceClaimName": "a"},
        {"name": "i", "resourceClaimName": "a"},
        resources={"claims": [{"name": "g"}]},
    ),
    "container claim twice": pod(
        {"name": "g", "resourceClaimName": "a"},
        resources={"claims": [{"name": "g"}, {"name": "g"}]},
    ),
    "container claim request twice": pod(
        {"name": "g", "resourceClaimName": "a"},
        resources={"claims": [{"name": "g", "request": "r"}, {"name": "g", "request": "r"}]},
    ),
    "container claim whole after request": pod(
        {"name": "g", "resourceClaimName": "a"},
        resources={"claims": [{"name": "g", "request": "r"}, {"name": "g"}]},
    ),
    "container claim with a bad request": pod(
        {"name": "g", "resourceClaimName": "a"},
        resources={"claims": [{"name": "g", "request": "R"}]},
    ),
    "container claim without a name": pod(
        {"name": "g", "resourceClaimName": "a"}, resources={"claims": [{"name": ""}]}
    ),
    "pod claim of v1alpha2 with source": pod(
        {"name": "g", "source": {"resourceClaimTemplateName": "t"}}
    ),
    "pod with two unknown fields": pod(bogus=1, other={"a": 1}),
    "pod without containers": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {},
    },
    "pod container without name and image": pod(containers=[{}]),
    "pod containers of the same name": pod(
        containers=[{"name": "c", "image": "x"}, {"name": "c", "image": "x"}]
    ),
    "pod with an unknown restart policy": pod(restartPolicy="Sometimes"),
    "pod with a bad name": {**pod(), "metadata": {"name": "Pod_1"}},
    "pod without a name": {**pod(), "metadata": {}},
    "pod with a bad label": {**pod(), "metadata": {"name": "p", "labels": {"a b": "c d"}}},
    "extended resource requests differ from limits": pod(
        resources={"limits": {"example.com/gpu": "2"}, "requests": {"example.com/gpu": "1"}}
    ),
    "extended resource without limit": pod(resources={"requests": {"example.com/gpu": "1"}}),
    "extended resource not an integer": pod(resources={"limits": {"example.com/gpu": "500m"}}),
    "pod claim with a dotted name": pod({"name": "a.b", "resourceClaimName": "a"}),
    "pod claim with a long name": pod({"name": LONG, "resourceClaimName": "a"}),
    "pod with a long label": {**pod(), "metadata": {"name": "p", "labels": {"a": LONG}}},
    "pod with a label that is a number": {**pod(), "metadata": {"name": "p", "labels": {"a": 1}}},
    "pod with a long name": {**pod(), "metadata": {"name": "a" * 254}},
    # Claims
    "claim request without kind": claim({"name": "r"}),
    "claim request of both kinds": claim(
        {
            "name": "r",
            "exactly": {"deviceClassName": "gpu"},
            "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}],
        }
    ),
    "claim request without name": claim(request("")),
    "claim request with a bad name": claim(request("R_1")),
    "claim request with a long name": claim(request(LONG)),
    "claim requests of the same name": claim(request(), request()),
    "claim request without class": claim({"name": "r", "exactly": {"count": 1}}),
    "claim request with a bad class": claim(request(deviceClassName="GPU!")),
    "claim request with a negative count": claim(request(count=-1)),
    "claim request with a count beside All": claim(request(allocationMode="All", count=2)),
    "claim request with an unknown mode": claim(request(allocationMode="Most")),
    "claim with too many requests": claim(*(request(f"r{i}") for i in range(33))),
    "claim selector without cel": claim(request(selectors=[{}])),
    "claim selector that does not parse": claim(
        request(selectors=[{"cel": {"expression": "device.driver =="}}])
    ),
    "claim selector of an unknown name": claim(
        request(selectors=[{"cel": {"expression": "unknown == 1"}}])
    ),
    "claim selector that is no bool": claim(
        request(selectors=[{"cel": {"expression": "device.driver"}}])
    ),
    "claim selector that is too long": claim(
        request(selectors=[{"cel": {"expression": "true || " * 2000 + "true"}}])
    ),
    "claim subrequests of the same name": claim(
        {
            "name": "r",
            "firstAvailable": [
                {"name": "s", "deviceClassName": "gpu"},
                {"name": "s", "deviceClassName": "gpu"},
            ],
        }
    ),
    "claim with too many subrequests": claim(
        {
            "name": "r",
            "firstAvailable": [{"name": f"s{i}", "deviceClassName": "gpu"} for i in range(9)],
        }
    ),
    "claim constraint without attribute": claim(request(), constraints=[{}]),
    "claim constraint without domain": claim(request(), constraints=[{"matchAttribute": "numa"}]),
    "claim constraint of an unknown request": claim(
        request(), constraints=[{"requests": ["x"], "matchAttribute": "a.example/b"}]
    ),
    "claim config without opaque": claim(request(), config=[{}]),
    "claim config without driver": claim(request(), config=[opaque("", {})]),
    "claim config without parameters": claim(request(), config=[opaque()]),
    "claim config of an unknown request": claim(
        request(), config=[{"requests": ["x"], **opaque(parameters={"a": 1})}]
    ),
    "claim config that is no object": claim(request(), config=[opaque(parameters=[1])]),
    "claim toleration with value beside Exists": claim(
        request(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])
    ),
    "claim with admin access in an ordinary namespace": claim(request(adminAccess=True)),
    "claim with the fields of v1beta1 in v1": claim({"name": "r", "deviceClassName": "gpu"}),
    "claim with the fields of v1 in v1beta1": claim(request(), version="v1beta1"),
    "claim in v1beta1 without class": claim({"name": "r", "count": 2}, version="v1beta1"),
    "claim in v1beta1 with count beside All": claim(
        {"name": "r", "deviceClassName": "g", "allocationMode": "All", "count": 2},
        version="v1beta1",
    ),
    "claim in v1beta1 with class and alternatives": claim(
        {
            "name": "r",
            "deviceClassName": "g",
            "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}],
        },
        version="v1beta1",
    ),
    "claim in v1beta1 with a bad selector": claim(
        {"name": "r", "deviceClassName": "g", "selectors": [{"cel": {"expression": "nothing"}}]},
        version="v1beta1",
    ),
    "claim with an unknown field": claim(request(), bogus=1),
    "claim with a count in words": claim(request(count="four")),
    "claim with requests that are no list": {
        **claim(),
        "spec": {"devices": {"requests": {"name": "r"}}},
    },
    "claim of v1alpha2": {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"resourceClassName": "gpu"},
    },
    "class of v1alpha2": {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceClass",
        "metadata": {"name": "gpu"},
        "driverName": "d.example.com",
    },
    # Templates
    "template with a bad request": template({"name": "r"}),
    "template with a count beside All": template(request(allocationMode="All", count=1)),
    "template with admin access": template(request(adminAccess=True)),
    # Classes
    "class with a bad selector": device_class(selectors=[{"cel": {"expression": "1 +"}}]),
    "class selector without cel": device_class(selectors=[{}]),
    "class config without opaque": device_class(config=[{}]),
    "class with a bad extended resource": device_class(extendedResourceName="gpu"),
    "class with a native extended resource": device_class(extendedResourceName="kubernetes.io/x"),
    "class with an unknown field": device_class(suitableNodes={}),
    "class with a bad name": {**device_class(), "metadata": {"name": "GPU"}},
    # Slices
    "slice without driver": resource_slice(driver=""),
    "slice with a bad driver": resource_slice(driver="d_e"),
    "slice without pool": resource_slice(pool={}),
    "slice without count": resource_slice(pool={"name": "p"}),
    "slice with a bad pool": resource_slice(pool={"name": "A/b", "resourceSliceCount": 1}),
    "slice without node": resource_slice(nodeName=None),
    "slice with an empty node": resource_slice(nodeName=""),
    "slice with two ways to nodes": resource_slice(allNodes=True),
    "slice with allNodes false": resource_slice(nodeName=None, allNodes=False),
    "slice with an empty node selector": resource_slice(
        nodeName=None, nodeSelector={"nodeSelectorTerms": []}
    ),
    "slice device without name": resource_slice({"attributes": {}}),
    "slice device with a bad name": resource_slice({"name": "GPU 0"}),
    "slice devices of the same name": resource_slice({"name": "g"}, {"name": "g"}),
    "slice with too many devices": resource_slice(*({"name": f"g{i}"} for i in range(129))),
    "slice attribute without value": resource_slice({"name": "g", "attributes": {"a": {}}}),
    "slice attribute with two values": resource_slice(
        {"name": "g", "attributes": {"a": {"int": 1, "string": "x"}}}
    ),
    "slice attribute with a bad version": resource_slice(
        {"name": "g", "attributes": {"a": {"version": "1.2"}}}
    ),
    "slice attribute with a long string": resource_slice(
        {"name": "g", "attributes": {"a": {"string": LONG + "a"}}}
    ),
    "slice attribute with a bad name": resource_slice(
        {"name": "g", "attributes": {"a-b": {"int": 1}}}
    ),
    "slice attribute with a bad domain": resource_slice(
        {"name": "g", "attributes": {"/b": {"int": 1}}}
    ),
    "slice device with too many attributes": resource_slice(
        {"name": "g", "attributes": {f"a{i}": {"int": i} for i in range(33)}}
    ),
    "slice device of v1beta1 in v1": resource_slice({"name": "g", "basic": {"attributes": {}}}),
    "slice device with a node of its own": resource_slice({"name": "g", "nodeName": "n"}),
    "slice device taint without effect": resource_slice({"name": "g", "taints": [{"key": "a"}]}),
    "slice device taint with an unknown effect": resource_slice(
        {"name": "g", "taints": [{"key": "a", "effect": "Never"}]}
    ),
    "slice with a capacity in words": resource_slice(
        {"name": "g", "capacity": {"memory": {"value": "much"}}}
    ),
    # Expressions: what the API server's environment for new ones has, types, and what they may cost
    "expression of nothing": selecting(""),
    "expression with an unknown function": selecting("device.driver.shout() == 'X'"),
    "expression with an unknown field": selecting("device.vendor == 'x'"),
    "expression that compares a string with a number": selecting("device.driver == 1"),
    "expression with a regular expression that does not parse": selecting(
        "device.driver.matches('(')"
    ),
    "expression that converts what is no number": selecting("int('x') == 1"),
    "expression with a mixed list": selecting("[1, 'a'].size() == 2"),
    "expression of a quantity that is no bool": selecting('quantity("1Gi")'),
    "expression that could cost too much": selecting(
        "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c,"
        " device.attributes.all(d, a == b && c == d))))"
    ),
    "expression over several lines": selecting("device.driver ==\n  unknown &&\n  true"),
    "expression with quotes and a tab": selecting('device.driver == "a\\t\'b" && nothing'),
    "expression in an alternative": claim(
        {
            "name": "r",
            "firstAvailable": [
                {
                    "name": "s",
                    "deviceClassName": "gpu",
                    "selectors": [{"cel": {"expression": "device"}}],
                }
            ],
        }
    ),
    "expression in a template": template(
        request(selectors=[{"cel": {"expression": "1 + true == 2"}}])
    ),
    "expressions of a class": device_class(
        selectors=[{"cel": {"expression": "true"}}, {"cel": {"expression": "tru"}}]
    ),
    # Taint rules
    "taint rule without effect": taint_rule(taint={"key": "a"}),
    "taint rule with an unknown effect": taint_rule(taint={"key": "a", "effect": "Never"}),
    "taint rule without key": taint_rule(taint={"effect": "NoSchedule"}),
    "taint rule with a bad value": taint_rule(
        taint={"key": "a", "value": "not a value", "effect": "NoExecute"}
    ),
    "taint rule with a bad selector": taint_rule(
        deviceSelector={"driver": "Not A Driver", "pool": "a/B", "device": "a_b"},
        taint={"key": "a", "effect": "None"},
    ),
    "taint rule of v1beta2 without effect": taint_rule("v1beta2", taint={"key": "a"}),
    # Jobs
    "job with restart policy Always": job(),
    "job with an unknown restart policy": job(restartPolicy="Sometimes"),
    "job pod claim with neither name": job(restartPolicy="Never", resourceClaims=[{"name": "g"}]),
    "job with negative completions": {
        **job(restartPolicy="Never"),
        "spec": {**job(restartPolicy="Never")["spec"], "completions": -1},
    },
    # Places
    "pod in a namespace that does not exist": {
        **pod(),
        "metadata": {"name": "p", "namespace": "nowhere"},
    },
    "kind that does not exist": {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "g"}},
}
