"""Does a DRA driver keep its contract with the kubelet? Asked without a cluster, in seconds.

The suite plays the kubelet on the driver's sockets and the API server behind its kubeconfig
(`conformance.drivercheck.api`), allocates the devices that the driver publishes as kube-scheduler
would, and looks at each rule on its own (`conformance.drivercheck.checks`; all of them in
`conformance.drivercheck.run`). It knows nothing of a driver but its sockets, its objects in
the API and its CDI specs, so a driver may be written in any language.

A driver is not trusted: whatever it sends, or does not send, ends a check and not the run.
"""
