package clusterset

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// LossAfter is how long a member has to be disconnected before it counts as
// lost, unless the ClusterSet says otherwise. A second replica of a member
// controller takes over within 15 s of the first one's death; no endpoint should
// go for that.
const LossAfter = 30 * time.Second

// ReasonInvalidLossPolicy: the annotations about lost members say something that
// cannot be understood, so lost members are kept.
const ReasonInvalidLossPolicy = "InvalidLossPolicy"

// LossSetting is what the leader's ClusterSet says of lost members.
type LossSetting struct {
	Policy v1alpha1.LossPolicy
	After  time.Duration
}

// ReadLossPolicy reads AnnotationOnMemberLoss. Without it the policy is empty.
// One that cannot be understood is empty as well, with the problem.
func ReadLossPolicy(annotations map[string]string) (v1alpha1.LossPolicy, *Problem) {
	switch policy := v1alpha1.LossPolicy(annotations[v1alpha1.AnnotationOnMemberLoss]); policy {
	case "", v1alpha1.LossKeep, v1alpha1.LossNotReady, v1alpha1.LossWithdraw:
		return policy, nil
	default:
		return "", &Problem{ReasonInvalidLossPolicy, fmt.Sprintf(
			"annotation %q is %q, so what is imported from members that are lost stays; set it to %s, %s or %s",
			v1alpha1.AnnotationOnMemberLoss, policy, v1alpha1.LossKeep, v1alpha1.LossNotReady, v1alpha1.LossWithdraw)}
	}
}

// ReadLossSetting reads what a leader's ClusterSet says. What cannot be understood
// keeps everything: nothing is withdrawn because of a typing error.
func ReadLossSetting(annotations map[string]string) (LossSetting, *Problem) {
	policy, problem := ReadLossPolicy(annotations)
	if policy == "" {
		policy = v1alpha1.LossKeep
	}
	setting := LossSetting{Policy: policy, After: LossAfter}
	text, set := annotations[v1alpha1.AnnotationOnMemberLossAfter]
	if !set {
		return setting, problem
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < 0 {
		return LossSetting{Policy: v1alpha1.LossKeep, After: LossAfter}, &Problem{ReasonInvalidLossPolicy, fmt.Sprintf(
			"annotation %q is %q, so what is imported from members that are lost stays; set it to a time such as \"30s\" or \"5m\"",
			v1alpha1.AnnotationOnMemberLossAfter, text)}
	}
	setting.After = after
	return setting, problem
}

// LostMembers are those that a status calls disconnected for at least so long,
// sorted. A status that says nothing of members says of nobody that he is lost.
//
// The time in a status goes on while the leader is away, and begins anew when the
// status was lost. So nobody is lost before the silence was heard by this process
// too, and who has been told of as lost stays so until heard again.
func LostMembers(status v1alpha1.ClusterSetStatus, silences map[string]Silence, told v1alpha1.MemberLoss, after time.Duration, now time.Time) []string {
	var lost []string
	for _, cluster := range status.ClusterStatuses {
		id := cluster.ClusterID
		c, ok := findMember(status, id)
		if !ok || c.Status != corev1.ConditionFalse || slices.Contains(lost, id) {
			continue
		}
		if slices.Contains(told.Clusters, id) || silences[id].Witnessed && now.Sub(c.LastTransitionTime.Time) >= after {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	return lost
}

// TellLoss returns the ResourceImport that tells own members who is lost, made
// of the one that is there; nil when there is nobody to tell of. An object at
// that name that says something else is not ours, and stays.
func TellLoss(current *v1alpha1.ResourceImport, namespace string, setting LossSetting, lost []string) *v1alpha1.ResourceImport {
	if current != nil && current.Spec.Kind != v1alpha1.KindMemberLoss {
		return current
	}
	if len(lost) == 0 {
		return nil
	}
	next := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.MemberLossImport, Namespace: namespace},
		Spec:       v1alpha1.ResourceImportSpec{Kind: v1alpha1.KindMemberLoss, Name: v1alpha1.MemberLossImport, Namespace: namespace},
	}
	if current != nil {
		next = current.DeepCopy()
	}
	text, err := json.Marshal(v1alpha1.MemberLoss{Policy: setting.Policy, Clusters: lost})
	if err != nil { // strings
		panic(err)
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.AnnotationLost, string(text))
	return next
}

// ReadLoss is what the leader tells; nobody is lost when it tells nothing, or
// nothing that can be understood.
func ReadLoss(told *v1alpha1.ResourceImport) v1alpha1.MemberLoss {
	var loss v1alpha1.MemberLoss
	if told == nil || told.Spec.Kind != v1alpha1.KindMemberLoss || json.Unmarshal([]byte(told.Annotations[v1alpha1.AnnotationLost]), &loss) != nil {
		return v1alpha1.MemberLoss{}
	}
	return loss
}

// SeesLeader tells whether a member can see its leader: the last contact went
// well and is not older than the limit. Who cannot, takes nothing away (WK-42).
func (p Pulse) SeesLeader(now time.Time, limit time.Duration) bool {
	last := p.LastBeat
	if p.Renewed.After(last) {
		last = p.Renewed
	}
	return p.Problem == nil && !p.LastBeat.IsZero() && now.Sub(last) <= limit
}
