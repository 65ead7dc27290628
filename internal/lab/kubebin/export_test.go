package kubebin

// Target is the folder a build in a cache ends in.
func Target(cache string) (string, error) {
	b, err := newBuild(cache)
	if err != nil {
		return "", err
	}
	return b.target, nil
}
