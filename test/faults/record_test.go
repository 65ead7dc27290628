package faults_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// replicaKey marks the requests of one replica, as a Pod's name marks those with
// a token bound to it.
const replicaKey = "replica"

// write is one that the API server was about to make.
type write struct {
	by                        string // replica
	operation, resource, name string
}

func (w write) String() string {
	return fmt.Sprintf("replica %s did %s %s %q", w.by, w.operation, w.resource, w.name)
}

// record is what the API server asked about: every write of a marked replica to
// the common area, in order.
type record struct {
	mu     sync.Mutex
	writes []write
}

func (r *record) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.writes)
}

func (r *record) since(n int) []write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]write(nil), r.writes[n:]...)
}

// ServeHTTP answers a review: everything may be written.
func (r *record) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(answer, "this is no review", http.StatusBadRequest)
		return
	}
	asked := review.Request
	if by := asked.UserInfo.Extra[replicaKey]; len(by) == 1 {
		resource := asked.Resource.Resource
		if asked.SubResource != "" {
			resource += "/" + asked.SubResource
		}
		r.mu.Lock()
		r.writes = append(r.writes, write{by[0], string(asked.Operation), resource, asked.Name})
		r.mu.Unlock()
	}
	review.Response, review.Request = &admissionv1.AdmissionResponse{UID: asked.UID, Allowed: true}, nil
	_ = json.NewEncoder(answer).Encode(review) // an API server that went away needs no answer
}

// admit lets the API server ask about every write to the common area.
func admit(t *testing.T, a assembly) *record {
	t.Helper()
	r := &record{}
	server := httptest.NewTLSServer(r)
	t.Cleanup(server.Close)
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "faults"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "writes.faults.test",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": a.Area}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	a.Leader.Make(t, hook)
	t.Cleanup(func() { a.Leader.Discard(t, hook) })
	// It holds when a write of somebody marked is seen.
	marked := *a.Leader.Config
	marked.Impersonate.UserName, marked.Impersonate.Groups = "somebody", []string{"system:masters"}
	marked.Impersonate.Extra = map[string][]string{replicaKey: {"somebody"}}
	as, err := client.New(&marked, client.Options{})
	must(t, err)
	fleet.Eventually(t, "the API server asks", func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Area, Name: "asks"}}
		if err := as.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if r.length() == 0 {
			return errors.New("it took a write without a question")
		}
		return nil
	})
	return r
}
