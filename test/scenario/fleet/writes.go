package fleet

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
)

// Writes counts the requests of one kind that would change something, since the
// API server of a cluster started: by resource, whatever their outcome.
type Writes map[string]int

// requestTotal is a line of the API server's metrics.
var requestTotal = regexp.MustCompile(`^apiserver_request_total\{(.*)\} ([0-9.e+]+)$`)

var (
	labelResource = regexp.MustCompile(`\bresource="([^"]*)"`)
	labelVerb     = regexp.MustCompile(`\bverb="([^"]*)"`)
)

// Writes asks the API server of a cluster how often it was asked to write.
func (c *Cluster) Writes(t testing.TB, resources ...string) Writes {
	t.Helper()
	body := c.metrics(t)
	defer body.Close()
	counts := Writes{}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		match := requestTotal.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		verb, resource := labelVerb.FindStringSubmatch(match[1]), labelResource.FindStringSubmatch(match[1])
		if verb == nil || resource == nil || !slices.Contains(resources, resource[1]) ||
			!slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, verb[1]) {
			continue
		}
		count, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			t.Fatalf("metrics of cluster %q: %v", c.Name, err)
		}
		counts[resource[1]] += int(count)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("metrics of cluster %q: %v", c.Name, err)
	}
	return counts
}

func (c *Cluster) metrics(t testing.TB) io.ReadCloser {
	t.Helper()
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config.Host+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("metrics of cluster %q: %v, %v", c.Name, answer, err)
	}
	return answer.Body
}

// Since tells which resources were written to after an earlier count.
func (w Writes) Since(before Writes) error {
	var grown []string
	for resource, n := range w {
		if n > before[resource] {
			grown = append(grown, fmt.Sprintf("%s %d times", resource, n-before[resource]))
		}
	}
	if len(grown) == 0 {
		return nil
	}
	slices.Sort(grown)
	return fmt.Errorf("written: %v", grown)
}
