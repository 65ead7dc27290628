package lab

// Open gives access to a lab of detached processes. What does not run shows
// when it is asked.
func Open(dir string) (*Lab, error) {
	dir, err := canonical(dir)
	if err != nil {
		return nil, err
	}
	spec, err := Load(dir)
	if err != nil {
		return nil, err
	}
	l := &Lab{spec: spec, clusters: map[string]*Cluster{}}
	for _, name := range spec.ClusterNames() {
		site, err := spec.site(name)
		if err != nil {
			return nil, err
		}
		l.clusters[name], err = newCluster(site, remote{cluster: name, socket: site.socket()})
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}
