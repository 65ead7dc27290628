package requests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const before = `# HELP apiserver_request_total Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="",resource="services",verb="GET",version="v1"} 7
apiserver_request_total{code="201",group="",resource="services",verb="POST",version="v1"} 3
apiserver_request_total{code="200",group="discovery.k8s.io",resource="endpointslices",verb="PUT",version="v1"} 2
apiserver_request_total{code="409",group="discovery.k8s.io",resource="endpointslices",verb="PUT",version="v1"} 1
apiserver_request_total{code="201",group="multicluster.x-k8s.io",resource="serviceimports",verb="POST",version="v1beta1"} 4
apiserver_something_else{verb="POST"} 9
`

func TestWriteRequestsByResource(t *testing.T) {
	counts, err := parse([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	want := Counts{"services": 3, "endpointslices": 3, "serviceimports.multicluster.x-k8s.io": 4}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	later := Counts{"services": 5, "endpointslices": 3, "serviceimports.multicluster.x-k8s.io": 4, "leases": 1}
	if diff := cmp.Diff(Counts{"services": 2, "leases": 1}, later.Since(counts)); diff != "" {
		t.Error(diff)
	}
}
