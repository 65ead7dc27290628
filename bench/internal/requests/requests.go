// Package requests counts write requests at an API server, whatever became of
// them, from its own metrics. Together with package journal it shows requests
// that were refused or changed nothing.
package requests

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Counts are write requests by resource, as "endpointslices" or
// "resourceexports.multicluster.crd.antrea.io".
type Counts map[string]int

const metric = "apiserver_request_total"

// Read asks an API server how many write requests it has answered.
func Read(ctx context.Context, config *rest.Config) (Counts, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics of the API server: %w", err)
	}
	return parse(text)
}

func parse(text []byte) (Counts, error) {
	// The whole is megabytes; one metric is wanted.
	var wanted bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	fmt.Fprintf(&wanted, "# TYPE %s counter\n", metric)
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(metric+"{")) {
			wanted.Write(append(lines.Bytes(), '\n'))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&wanted)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the metrics of the API server: %w", err)
	}
	counts := Counts{}
	for _, m := range families[metric].GetMetric() {
		labels := map[string]string{}
		for _, label := range m.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if !writes(labels["verb"]) {
			continue
		}
		resource := labels["resource"]
		// Built-in groups have no dot in the layout of etcd, nor here.
		if group := labels["group"]; strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".x-k8s.io") {
			resource += "." + group
		}
		counts[resource] += int(m.GetCounter().GetValue())
	}
	return counts, nil
}

func writes(verb string) bool {
	switch verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	}
	return false
}

// Since is what was added to an earlier count.
func (c Counts) Since(before Counts) Counts {
	more := Counts{}
	for resource, n := range c {
		if n -= before[resource]; n != 0 {
			more[resource] = n
		}
	}
	return more
}
