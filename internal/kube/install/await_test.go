package install

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestReadiness(t *testing.T) {
	cases := map[string]struct {
		ready   check
		object  string
		done    bool
		missing string // part of it
		failure string // part of it
	}{
		"a CRD nobody has looked at": {
			ready: established, object: `{}`, missing: "does not serve it yet",
		},
		"a CRD that is served": {
			ready: established, done: true, object: `
status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`,
		},
		"a CRD whose names are another's will never be served": {
			ready: established, failure: "svcex is taken", object: `
status: {conditions: [{type: NamesAccepted, status: "False", message: svcex is taken}]}`,
		},
		"a Deployment whose status speaks of an older one": {
			ready: available, missing: "has not seen it", object: `
metadata: {generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2}`,
		},
		"not all replicas are of the present template": {
			ready: available, missing: "1 of 2 replicas are up to date", object: `
spec: {replicas: 2}
status: {replicas: 3, updatedReplicas: 1, availableReplicas: 3}`,
		},
		"an old replica still runs": {
			ready: available, missing: "previous version", object: `
spec: {replicas: 2}
status: {replicas: 3, updatedReplicas: 2, availableReplicas: 3}`,
		},
		"a replica is not available": {
			ready: available, missing: "1 of 2 replicas are available", object: `
spec: {replicas: 2}
status: {replicas: 2, updatedReplicas: 2, availableReplicas: 1}`,
		},
		"rolled out": {
			ready: available, done: true, object: `
metadata: {generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}`,
		},
		"a roll-out that its controller gave up": {
			ready: available, failure: "image cannot be pulled", object: `
spec: {replicas: 2}
status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: image cannot be pulled}]}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			if err := yaml.Unmarshal([]byte("kind: X\n"+strings.TrimPrefix(c.object, "{}")), obj); err != nil {
				t.Fatal(err)
			}
			done, missing, err := c.ready(obj)
			if done != c.done {
				t.Errorf("done is %v", done)
			}
			if !done && !strings.Contains(missing, c.missing) {
				t.Errorf("missing is %q, want %q in it", missing, c.missing)
			}
			if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Errorf("error %v, want %q in it", err, c.failure)
			}
		})
	}
}
