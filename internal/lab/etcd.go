package lab

// etcdMember is the name of the one member; a restored data directory must
// carry the same.
const etcdMember = "lab"

func (s *site) etcd() component {
	peer := s.url(s.Ports.EtcdPeer)
	client := s.url(s.Ports.Etcd)
	args := flags(
		"name="+etcdMember,
		"data-dir="+s.etcdData(),
		"listen-client-urls="+client,
		"advertise-client-urls="+client,
		"listen-peer-urls="+peer,
		"initial-advertise-peer-urls="+peer,
		"initial-cluster="+etcdMember+"="+peer,
		"cert-file="+s.pki("etcd.crt"),
		"key-file="+s.pki("etcd.key"),
		"trusted-ca-file="+s.pki("ca.crt"),
		"client-cert-auth=true",
		"peer-cert-file="+s.pki("etcd.crt"),
		"peer-key-file="+s.pki("etcd.key"),
		"peer-trusted-ca-file="+s.pki("ca.crt"),
		"peer-client-cert-auth=true",
		// kube-apiserver asks for progress of its watches in between.
		"watch-progress-notify-interval=5s",
		"log-level=warn",
	)
	if !s.lab.Fsync {
		args = append(args, "--unsafe-no-fsync=true")
	}
	return component{
		Name:  Etcd,
		Path:  s.lab.Binaries.Etcd,
		Args:  args,
		Ready: s.probe(client+"/readyz", "etcd-client"),
	}
}
