// Package node is the lab's node agent: a small kubelet without containers.
//
// It registers a Node, binds Pods to it, and makes them run. A container whose
// image is played by a local program becomes a process, with its
// ServiceAccount's token, its volumes, probes, restarts, logs and a clean end.
// Every other container is declared to run well, so that Deployments, Jobs and
// EndpointSlices of Pods nobody needs to talk to are complete.
//
// One loop serves all Pods: read the Pod and its processes, decide
// (package podstate), act, report. An event from the API server, the end of a
// process, a probe's verdict and a timer all do the same thing: they put the
// Pod's name into the queue. A Pod without local containers costs no goroutine
// and no memory beyond the informer's.
//
//	informer ─┐
//	processes ┼→ queue → observe → podstate.Decide → act → report status
//	probes    ┤
//	timers ───┘
//
// The agent keeps nothing that the world does not show. Restart counts and
// addresses are in the Pods' status, and processes die with the agent, so a
// new agent starts them again as a kubelet does after a reboot.
package node
