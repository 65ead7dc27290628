package v1alpha1

// Kinds a ResourceExport or ResourceImport may carry (spec.kind).
const (
	KindService                    = "Service"
	KindServiceImport              = "ServiceImport"
	KindEndpoints                  = "Endpoints"
	KindClusterInfo                = "ClusterInfo"
	KindLabelIdentity              = "LabelIdentity"
	KindAntreaClusterNetworkPolicy = "AntreaClusterNetworkPolicy"
	KindMultiClusterConfig         = "MultiClusterConfig"
	// KindMemberLoss is ours: what our leader says of members it does not hear.
	// Upstream passes kinds it does not know by.
	KindMemberLoss           = "LockstepMemberLoss"
	DefaultLeaderNamespace   = "antrea-multicluster"
	DefaultMemberNamespace   = "kube-system"
	ControllerServiceAccount = "antrea-mc-controller"
	MemberClusterRole        = "antrea-mc-member-cluster-role"
	ControllerConfigMap      = "antrea-mc-controller-config"
	ControllerConfigKey      = "controller_manager_config.yaml"
	TokenSecretCAKey         = "ca.crt"
	TokenSecretTokenKey      = "token"
	TokenSecretNamespaceKey  = "namespace"
)

// Labels of a ResourceExport: the tuple and the cluster it comes from.
const (
	LabelSourceName      = "sourceName"
	LabelSourceNamespace = "sourceNamespace"
	LabelSourceKind      = "sourceKind"
	LabelSourceClusterID = "sourceClusterID"
)

// Annotations of the wire.
const (
	// AnnotationTouch on an announce: time of the last heartbeat, RFC 3339 in
	// seconds, by the member's clock.
	AnnotationTouch = "touch-ts"
	// AnnotationClusterID on a ServiceAccount of the common area binds that
	// credential to one cluster ID.
	AnnotationClusterID = "multicluster.antrea.io/cluster-id"
	// AnnotationCreatedByCLI marks what the command line made and may remove.
	AnnotationCreatedByCLI = "multicluster.antrea.io/created-by-antctl"
	// AnnotationImportedService marks a Service or Endpoints made by an importer.
	AnnotationImportedService = "multicluster.antrea.io/imported-service"
	// AnnotationImportedPolicy marks a ClusterNetworkPolicy made by an importer.
	AnnotationImportedPolicy = "multicluster.antrea.io/imported-acnp"
)

// Annotations of the wire on Nodes.
const (
	// AnnotationGateway makes a Node a candidate for the gateway. Upstream looks
	// only whether it is there.
	AnnotationGateway = "multicluster.antrea.io/gateway"
	// AnnotationGatewayIP is the address under which other clusters reach the
	// Node, in place of those it has.
	AnnotationGatewayIP = "multicluster.antrea.io/gateway-ip"
)

// Finalizers of the wire.
const (
	FinalizerExport = "resourceexport.antrea.io/finalizer"
	// FinalizerExportLegacy was written before v2.2 and means the same.
	FinalizerExportLegacy = "resourceexport.finalizers.antrea.io"
	// FinalizerAnnouncePrefix is followed by the cluster ID.
	FinalizerAnnouncePrefix = "memberclusterannounce.finalizer.antrea.io/"
)

// Marks that only our own peers write and read. Upstream keeps annotations it
// does not know, and never looks at them.
const (
	// AnnotationPeer on an announce: the member speaks our exchange ("v1").
	AnnotationPeer = "multicluster.lockstep.dev/peer"
	// AnnotationPublished on an announce: all exports of the member are in the
	// common area; the value names the member's session with it. Absent while
	// the member is still comparing.
	AnnotationPublished = "multicluster.lockstep.dev/published"
	// AnnotationClusterUID on an announce: UID of the member's kube-system
	// Namespace, which tells two clusters that claim one ID apart.
	AnnotationClusterUID = "multicluster.lockstep.dev/cluster-uid"
	// AnnotationCredential on an announce: with which of its tokens the member
	// has written it; 16 hex digits, from which no token can be made.
	AnnotationCredential = "multicluster.lockstep.dev/credential"
	// AnnotationLeader on an announce, written by our leader: a LeaderStamp.
	AnnotationLeader = "multicluster.lockstep.dev/leader"
	// AnnotationSilentSince on an announce, written by our leader and there only
	// while the member is silent: when the leader received the last sign of life,
	// RFC 3339, by the leader's clock.
	AnnotationSilentSince = "multicluster.lockstep.dev/silent-since"
	// AnnotationCleanUpAt on an announce, written by our leader: when it deletes
	// the announce and all that the member exports, unless the member is heard
	// before. RFC 3339, by the leader's clock.
	AnnotationCleanUpAt = "multicluster.lockstep.dev/clean-up-at"
	// AnnotationHoldCleanUp on an announce: an administrator says that what the
	// member exports is kept, however long it is silent. Any value but "false".
	AnnotationHoldCleanUp = "multicluster.lockstep.dev/hold-clean-up"
	// AnnotationOnMemberLoss on a ClusterSet: a LossPolicy. On the leader's it
	// counts for all members, on a member's for what that member imports.
	AnnotationOnMemberLoss = "multicluster.lockstep.dev/on-member-loss"
	// AnnotationOnMemberLossAfter on the leader's ClusterSet: how long a member
	// has to be disconnected before it counts as lost, as "90s" or "5m".
	AnnotationOnMemberLossAfter = "multicluster.lockstep.dev/on-member-loss-after"
	// AnnotationLost on the ResourceImport of KindMemberLoss: MemberLoss.
	AnnotationLost = "multicluster.lockstep.dev/lost"
	// MemberLossImport names that ResourceImport, of which there is one at most.
	MemberLossImport = "lockstep-member-loss"
	// AnnotationService on a Service export: ServiceFacts.
	AnnotationService = "multicluster.lockstep.dev/service"
	// AnnotationRetired on a ResourceImport of KindLabelIdentity, written by our
	// leader: since when no cluster exports the label, RFC 3339, by the leader's
	// clock. The object only keeps its number from being given away.
	AnnotationRetired = "multicluster.lockstep.dev/retired"
	// AnnotationExported on a slice of the common area: when the ServiceExport
	// was made, RFC 3339, by the clock of its own cluster. It is what importers
	// measure from and decides nothing.
	AnnotationExported = "multicluster.lockstep.dev/exported"
	// AnnotationMerge on a Service import: MergeFacts.
	AnnotationMerge = "multicluster.lockstep.dev/merge"
	// AnnotationLeaderSeen on the member's ClusterSet: what the member
	// remembers of the leader (LeaderMemory).
	AnnotationLeaderSeen = "multicluster.lockstep.dev/leader-seen"
	// AnnotationAcceptLeader on the member's ClusterSet: an administrator
	// accepts the common area of the leader's ClusterSet with this UID as it is;
	// or, for a leader that names none, ends the hold that began at this time.
	AnnotationAcceptLeader = "multicluster.lockstep.dev/accept-leader"
	// AnnotationRenamedFrom on the member's ClusterSet: the cluster ID that the
	// member had before. Whoever wrote it withdraws the announce of that ID when
	// everybody has what the member publishes under the new one; the member does
	// not.
	AnnotationRenamedFrom = "multicluster.lockstep.dev/renamed-from"
	// FinalizerLeave on the member's ClusterSet keeps it until the member has
	// withdrawn from the common area.
	FinalizerLeave = "multicluster.lockstep.dev/leave"
	// LabelClusterSet on every object an importer makes: name of the ClusterSet
	// it was imported from. It is the proof that the object is ours.
	LabelClusterSet = "multicluster.lockstep.dev/clusterset"
	// LabelServiceNamespace on a slice of the common area; its sibling for the
	// Service name is the label of the MCS API.
	LabelServiceNamespace = "multicluster.lockstep.dev/service-namespace"
	// SliceManager is the value of endpointslice.kubernetes.io/managed-by on
	// our slices, and of the service-proxy-name label that hides slices of the
	// common area from proxies.
	SliceManager = "multicluster.lockstep.dev"
	// PeerVersion is the value of AnnotationPeer.
	PeerVersion = "v1"
)
