package lab

import "strconv"

// authentication lets nobody in without credentials but health checks: a
// controller that forgets its credentials must fail here as in production.
const authentication = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
`

func (s *site) apiServer() component {
	return component{
		Name: APIServer,
		Path: s.lab.Binaries.APIServer,
		Args: append(s.egressFlags(), flags(
			"bind-address="+s.Address.String(),
			"advertise-address="+s.Address.String(),
			"secure-port="+strconv.Itoa(int(s.Ports.APIServer)),
			"tls-cert-file="+s.pki(apiServerCertificate+".crt"),
			"tls-private-key-file="+s.pki(apiServerCertificate+".key"),
			"client-ca-file="+s.pki("ca.crt"),
			"etcd-servers="+s.url(s.Ports.Etcd),
			"etcd-cafile="+s.pki("ca.crt"),
			"etcd-certfile="+s.pki("etcd-client.crt"),
			"etcd-keyfile="+s.pki("etcd-client.key"),
			"service-cluster-ip-range="+s.ServiceCIDR.String(),
			"authentication-config="+s.conf("authentication.yaml"),
			"authorization-mode=Node,RBAC",
			"service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"service-account-key-file="+s.pki("sa.key"),
			"service-account-signing-key-file="+s.pki("sa.key"),
			"allow-privileged=true",
			// The Endpoints of Service default/kubernetes may not hold a loopback
			// address, and nothing in the lab resolves that Service.
			"endpoint-reconciler-type=none",
			// Nobody would lift the taint of a new Node: the controller that does
			// is left out, see controllerManager.
			"disable-admission-plugins=TaintNodesByCondition",
			// Without it a stopping server waits a minute for its watchers to leave.
			"shutdown-watch-termination-grace-period=1s",
			"profiling=false",
		)...),
		Ready: s.probe(s.url(s.Ports.APIServer)+"/readyz", "admin"),
	}
}
