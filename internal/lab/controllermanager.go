package lab

import (
	"strconv"
	"strings"
)

// controllers are those whose work a lab can see. Left out are the ones for
// volumes, cloud and devices, and the two that would evict the Pods of a Node
// that is silent for a while: a lab that was suspended with the laptop goes
// on where it was.
var controllers = []string{
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller",
	"namespace-controller",
	"garbage-collector-controller",
	"clusterrole-aggregation-controller",
	"resourcequota-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"endpointslice-mirroring-controller",
	"service-cidr-controller",
	"deployment-controller",
	"replicaset-controller",
	"statefulset-controller",
	"daemonset-controller",
	"job-controller",
	"cronjob-controller",
	"ttl-after-finished-controller",
	"disruption-controller",
	"pod-garbage-collector-controller",
	"validatingadmissionpolicy-status-controller",
}

func (s *site) controllerManager() component {
	return component{
		Name: ControllerManager,
		Path: s.lab.Binaries.ControllerManager,
		Args: flags(
			"bind-address="+s.Address.String(),
			"secure-port="+strconv.Itoa(int(s.Ports.ControllerManager)),
			// Its own self-signed RSA certificate would take longer than the start.
			"tls-cert-file="+s.pki("controller-manager.crt"),
			"tls-private-key-file="+s.pki("controller-manager.key"),
			"kubeconfig="+s.kubeconfig("controller-manager"),
			"use-service-account-credentials=true",
			"service-account-private-key-file="+s.pki("sa.key"),
			"root-ca-file="+s.pki("ca.crt"),
			"service-cluster-ip-range="+s.ServiceCIDR.String(),
			"cluster-cidr="+s.PodCIDR.String(),
			"allocate-node-cidrs=false",
			"controllers="+strings.Join(controllers, ","),
			"leader-elect=false",
			"kube-api-qps=200",
			"kube-api-burst=400",
			"profiling=false",
		),
		Ready: s.probe(s.url(s.Ports.ControllerManager)+"/healthz", "admin"),
	}
}
