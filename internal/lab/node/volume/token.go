package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TokenSpec is what a ServiceAccount token of a Pod is asked for with. Equal
// specs of one Pod can share a token.
type TokenSpec struct {
	// Audience is empty for the API server's own.
	Audience string
	Seconds  int64
}

func tokenSpec(s *corev1.ServiceAccountTokenProjection) TokenSpec {
	spec := TokenSpec{Audience: s.Audience, Seconds: int64(time.Hour / time.Second)}
	if s.ExpirationSeconds != nil {
		spec.Seconds = *s.ExpirationSeconds
	}
	return spec
}

// TokenSpecs lists the tokens the volumes of a Pod need, each once.
func TokenSpecs(pod *corev1.Pod) []TokenSpec {
	var specs []TokenSpec
	seen := map[TokenSpec]bool{}
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken == nil {
				continue
			}
			if spec := tokenSpec(source.ServiceAccountToken); !seen[spec] {
				seen[spec] = true
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// RenewAt is when a token is exchanged for a new one: after 80 % of its life,
// which leaves the last fifth for an API server that cannot be reached.
func RenewAt(issued, expires time.Time) time.Time {
	return issued.Add(expires.Sub(issued) * 4 / 5)
}
