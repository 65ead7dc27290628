package lab

import (
	"context"
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// askAgain is how soon an API server is asked again whether a fault holds.
const askAgain = 50 * time.Millisecond

// overloadName is that of both objects which make the API server refuse.
const overloadName = "lockstep-lab-overload"

// overload makes the API server answer every ServiceAccount with 429, as one does
// whose seats are all taken: by its own priority and fairness (KEP-1040).
// ServiceAccounts get a level of their own, which serves one request at a time and
// queues none, and that one is ours. Administrators are served as before.
func (h *Host) overload(ctx context.Context) error {
	if err := h.overloadObjects(ctx); err != nil {
		return err
	}
	client, err := h.anyAccount()
	if err != nil {
		return err
	}
	h.crowd.gather(client)
	return h.awaitOverload(ctx, true)
}

// relieve takes the overload away.
func (h *Host) relieve(ctx context.Context) error {
	h.crowd.leave()
	if err := h.removeOverloadObjects(ctx); err != nil {
		return err
	}
	return h.awaitOverload(ctx, false)
}

func (h *Host) overloadObjects(ctx context.Context) error {
	client, err := h.administrator()
	if err != nil {
		return err
	}
	level := &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: overloadName},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}
	if _, err := client.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if _, err := client.FlowcontrolV1().FlowSchemas().Create(ctx, overloadSchema(), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// overloadSchema sends the requests of all ServiceAccounts to that level, before
// any other schema can have them.
func overloadSchema() *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: overloadName},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: overloadName},
			MatchingPrecedence:         2, // 1 is that of requests which are exempt
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "system:serviceaccounts"}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}
}

func (h *Host) removeOverloadObjects(ctx context.Context) error {
	client, err := h.administrator()
	if err != nil {
		return err
	}
	if err := client.FlowcontrolV1().FlowSchemas().Delete(ctx, overloadName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	err = client.FlowcontrolV1().PriorityLevelConfigurations().Delete(ctx, overloadName, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// awaitOverload asks as a ServiceAccount until the API server refuses, or does not.
func (h *Host) awaitOverload(ctx context.Context, refused bool) error {
	client, err := h.anyAccount()
	if err != nil {
		return err
	}
	same := 0 // a few times in a row: who has the seat may be somebody else for a moment
	err = wait.PollUntilContextCancel(ctx, askAgain, true, func(ctx context.Context) (bool, error) {
		// Without another try: the client would wait and ask again by itself.
		answer := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces").MaxRetries(0).Do(ctx).Error()
		if same++; apierrors.IsTooManyRequests(answer) != refused {
			same = 0
		}
		return same >= 4, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not follow its flow schemas: %w", err)
	}
	return nil
}

// anyAccount acts as a ServiceAccount that nobody uses.
func (h *Host) anyAccount() (kubernetes.Interface, error) {
	config, err := h.site.restConfig()
	if err != nil {
		return nil, err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:lockstep-lab", Groups: []string{"system:serviceaccounts"}}
	return kubernetes.NewForConfig(config)
}

func (h *Host) administrator() (kubernetes.Interface, error) {
	config, err := h.site.restConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
