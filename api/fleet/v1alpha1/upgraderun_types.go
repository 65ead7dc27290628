package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpgradeRun is one upgrade: what to bring to which version, and how carefully.
// It lies where the thing to upgrade is led from; for a ClusterSet that is the
// common area of its leader. People write the spec, the one driver at a time
// writes the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=upr
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=`.status.stepsDone`
// +kubebuilder:printcolumn:name="Steps",type=integer,JSONPath=`.status.stepsTotal`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UpgradeRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   UpgradeRunSpec   `json:"spec,omitempty"`
	Status UpgradeRunStatus `json:"status,omitempty"`
}

// UpgradeRunSpec says what is wanted.
type UpgradeRunSpec struct {
	// ClusterSet to upgrade. It is the only kind of target so far.
	ClusterSet *ClusterSetTarget `json:"clusterSet"`
	// Image of the controllers to bring all clusters to, with its tag. Empty
	// leaves the controllers as they are: only credentials are changed then.
	Image string `json:"image,omitempty"`
	// Policy says how carefully.
	Policy UpgradePolicy `json:"policy,omitempty"`
	// Approvals that people gave.
	// +listType=map
	// +listMapKey=step
	Approvals []Approval `json:"approvals,omitempty"`
}

// ClusterSetTarget is a ClusterSet whose common area is the Namespace of the run.
type ClusterSetTarget struct {
	// Name of the ClusterSet.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Members are all of them. One that is left out stops the run before its
	// leader is touched (UPG-CHK-5).
	// +listType=map
	// +listMapKey=context
	// +kubebuilder:validation:MinItems=1
	Members []MemberAccess `json:"members"`
}

// MemberAccess is how the driver reaches a member.
type MemberAccess struct {
	// Context of the driver's kubeconfig.
	// +kubebuilder:validation:MinLength=1
	Context string `json:"context"`
	// Namespace of the member controller; kube-system when empty.
	Namespace string `json:"namespace,omitempty"`
	// Token is the name of the member's own credential; its cluster ID with
	// "-token" behind it when empty. A member that has one keeps it.
	Token string `json:"token,omitempty"`
}

// UpgradePolicy says how carefully to go on.
type UpgradePolicy struct {
	// Approve are names of steps, or what they begin with up to a slash ("leader",
	// "upgrade", "delete"), that wait for an approval.
	// +listType=set
	Approve []string `json:"approve,omitempty"`
	// Canary are contexts of members that go first, in each phase that changes
	// members; the others wait until they are done.
	// +listType=set
	Canary []string `json:"canary,omitempty"`
	// MaxConcurrent is how many members are changed at once; 0 means 1.
	// +kubebuilder:validation:Minimum=0
	MaxConcurrent int32 `json:"maxConcurrent,omitempty"`
	// Paused keeps the driver from changing anything; it goes on looking.
	Paused bool `json:"paused,omitempty"`
	// Override are ids of rules whose refusal is put up with. Few rules allow
	// that; docs/upgrade.md lists them with what can happen.
	// +listType=set
	Override []string `json:"override,omitempty"`
}

// Approval is the yes of a person to one step as it was shown.
type Approval struct {
	// Step is its id.
	Step string `json:"step"`
	// Digest of what the step would change. A step that would change something
	// else by now needs another approval.
	Digest string      `json:"digest"`
	By     string      `json:"by,omitempty"`
	At     metav1.Time `json:"at,omitempty"`
}

// UpgradePhase is where a run stands, in one word.
// +kubebuilder:validation:Enum=Running;Waiting;NeedsApproval;Refused;Paused;Done
type UpgradePhase string

const (
	// PhaseRunning: the driver changes something.
	PhaseRunning UpgradePhase = "Running"
	// PhaseWaiting: nothing to change now; something has to come true by itself.
	PhaseWaiting UpgradePhase = "Waiting"
	// PhaseNeedsApproval: a person has to approve a step.
	PhaseNeedsApproval UpgradePhase = "NeedsApproval"
	// PhaseRefused: a rule forbids to go on until somebody has changed something.
	PhaseRefused UpgradePhase = "Refused"
	// PhasePaused: spec.policy.paused.
	PhasePaused UpgradePhase = "Paused"
	// PhaseDone: the world is as the run wants it.
	PhaseDone UpgradePhase = "Done"
)

// UpgradeRunStatus is what the driver saw and did. All of it but the journal can
// be found out anew at any time.
type UpgradeRunStatus struct {
	ObservedGeneration int64        `json:"observedGeneration,omitempty"`
	Phase              UpgradePhase `json:"phase,omitempty"`
	// Message is one sentence for whoever looks.
	Message string `json:"message,omitempty"`
	// Digest of the plan and of what it rested on.
	Digest     string `json:"digest,omitempty"`
	StepsDone  int32  `json:"stepsDone,omitempty"`
	StepsTotal int32  `json:"stepsTotal,omitempty"`
	// Steps of the plan, in its order.
	// +listType=map
	// +listMapKey=id
	Steps []StepStatus `json:"steps,omitempty"`
	// Findings are what rules say, the heaviest first.
	// +listType=atomic
	Findings []Finding `json:"findings,omitempty"`
	// Journal is what the world forgets and the plan needs: baselines.
	// +listType=map
	// +listMapKey=key
	Journal []JournalEntry `json:"journal,omitempty"`
	// History is who did what, the newest last. Each entry was written before the
	// change was made, so that none is missing; the oldest go after 500.
	// +listType=atomic
	History []HistoryEntry `json:"history,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionDone of an UpgradeRun: True when its phase is Done.
const ConditionDone = "Done"

// StepStatus is one step of the plan.
type StepStatus struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// State is Done, Ready, Waiting, Pending, NeedsApproval, Refused or Paused.
	State string `json:"state"`
	// Message is what it waits for, or what stands in the way.
	Message string `json:"message,omitempty"`
	// Digest of what it would change; what an approval names.
	Digest string `json:"digest,omitempty"`
	// Changes are what it would do now, one line each.
	// +listType=atomic
	Changes []string `json:"changes,omitempty"`
}

// Finding is what a rule says about the clusters.
type Finding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	// Cluster is the ID of a member; empty means the leader.
	Cluster string `json:"cluster,omitempty"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// JournalEntry is one thing to remember.
type JournalEntry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// At by the clock of the leader cluster.
	At metav1.Time `json:"at,omitempty"`
}

// HistoryEntry is one change that was made, or was about to be.
type HistoryEntry struct {
	At metav1.Time `json:"at"`
	// By is the driver: where it runs and for whom.
	By   string `json:"by"`
	Step string `json:"step"`
	What string `json:"what"`
}

// UpgradeRunList is a list of UpgradeRuns.
//
// +kubebuilder:object:root=true
type UpgradeRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UpgradeRun `json:"items"`
}
