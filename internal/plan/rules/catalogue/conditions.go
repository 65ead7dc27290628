package catalogue

// conditions are the types that controllers write into a status.
var conditions = []Entry{
	{ID: "Ready", Kind: Condition, On: "ClusterSet", Meaning: "In a member: the leader is connected and has answered. At the leader: all members are connected.", Next: "read its reason; lockstep mc status shows both sides", Source: "wire of Antrea Multi-cluster v2.7"},
	{ID: "IsLeader", Kind: Condition, On: "ClusterSet", Meaning: "The leader controller has answered this member.", Next: "when it stays False, check that the leader controller runs and serves this ClusterSet", Source: "wire of Antrea Multi-cluster v2.7"},
	{ID: "CleanUpPending", Kind: Condition, On: "ClusterSet", Meaning: "At the leader, of one member: it has been silent for half a day, and the message says when all it exports is deleted.", Next: "bring the member back, or run the command in the message to keep what it exports", Source: "LDR-GC-1"},
	{ID: "Valid", Kind: Condition, On: "ServiceExport", Meaning: "The Service exists and is of a type that can be exported.", Next: "when False, read its reason", Source: "KEP-1645"},
	{ID: "Ready", Kind: Condition, On: "ServiceExport", Meaning: "The leader has merged the export, so that other clusters can import it.", Next: "when False, read its reason", Source: "KEP-1645"},
	{ID: "Conflict", Kind: Condition, On: "ServiceExport", Meaning: "Exports of this Service in other clusters disagree with this one; the oldest export decides.", Next: "make the Services agree in the property that the reason names", Source: "KEP-1645"},
	{ID: "Ready", Kind: Condition, On: "ServiceImport", Meaning: "The Service can be used in this cluster under its clusterset address.", Next: "when False, read its reason", Source: "KEP-1645"},
	{ID: "Ready", Kind: Condition, On: "ClusterInfoImport", Meaning: "Nothing speaks against the network that the other cluster announced.", Next: "when False, read its reason", Source: "wire of Antrea Multi-cluster v2.7, WK-9"},
	{ID: "Succeeded", Kind: Condition, On: "ResourceExport", Meaning: "The leader merged the export; on a ResourceImport, a member has imported it.", Source: "wire of Antrea Multi-cluster v2.7"},
	{ID: "Failure", Kind: Condition, On: "ResourceExport", Meaning: "The leader refused the export. On the wire its status is False.", Next: "read its message; the ServiceExport in the member has the same", Source: "wire of Antrea Multi-cluster v2.7"},
	{ID: "Conflict", Kind: Condition, On: "ResourceExport", Meaning: "How the export fared in the merge with those of other clusters.", Source: "KEP-1645"},
	{ID: "Imported", Kind: Condition, On: "ResourceExport", Meaning: "Of a policy: every member that it is meant for and that says so has imported it.", Next: "when False, its message says which member lacks what", Source: "WK-24"},
}

// reasons are written by controllers, in conditions and in Events.
var reasons = []Entry{
	reason("Disconnected", "ClusterSet Ready", "The last heartbeat failed, or is more than 30 s old; at the leader, of a member that renews a Lease, the last sign of life is more than 9 s old.", "check the member's controller and its network to the leader's API server"),
	reason("Unauthorized", "ClusterSet Ready", "The leader's API server refused the credential.", "apply a new member token, made by lockstep mc create membertoken at the leader"),
	reason("CredentialMissing", "ClusterSet Ready", "The token Secret or one of its keys is missing, or holds something else.", "apply the member token in the Namespace of the ClusterSet"),
	reason("InvalidClusterSet", "ClusterSet Ready", "The ClusterSet says something that cannot work.", "correct what the message names"),
	reason("LoopbackLeaderAddress", "ClusterSet Ready", "The leader's address leads every member to itself.", "set spec.leaders[0].server to an address that members can reach"),
	reason("ClusterIDInUse", "ClusterSet Ready", "Another cluster of the set announces the same cluster ID.", "join under another ID"),
	reason("SecondClusterSet", "ClusterSet Ready", "Another ClusterSet in the Namespace is older, and is the one that is served.", "delete one of them"),
	reason("Withdrawing", "ClusterSet Ready", "An earlier membership under this ID is still being undone.", "wait; the leader controller has to run for it"),
	reason("WaitingForLeader", "ClusterSet IsLeader", "The announce is at the leader's API server, and the leader controller has not answered.", "check that the leader controller runs and that it serves this ClusterSet"),
	reason("LeaderRestored", "ClusterSet Ready", "The common area went back to an earlier state, so nothing is withdrawn here until all members have published again.", "wait, or accept it as it is: lockstep mc accept-leader"),
	reason("Leaving", "ClusterSet Ready", "The ClusterSet is being deleted, and the withdrawal from the common area goes on.", "wait; it goes on without the leader too"),
	reason("CIDROverlap", "ClusterSet Ready", "Two clusters of the set announce ranges with addresses in common.", "give one of them another range"),
	reason("CIDROverlapResolved", "ClusterSet", "Ranges that overlapped do so no longer.", ""),
	reason("Connected", "ClusterSet Ready, of one member", "The member's heartbeats arrive.", ""),
	reason("Waiting", "ClusterSet Ready, of one member", "No heartbeat was seen since the leader controller started.", "wait 30 s"),
	reason("NoMembers", "ClusterSet Ready", "No cluster has joined yet.", "join one: lockstep mc join"),
	reason("NoReadyCluster", "ClusterSet Ready", "No member is connected.", "check the network and the controllers of the members"),
	reason("MembersNotReady", "ClusterSet Ready", "Some members are not connected; the message names them.", "check their controllers and networks"),
	reason("UnboundCredentialTrusted", "ClusterSet", "An export was written with a credential that is bound to no cluster ID; the configuration of the leader allows that.", "give that member a token of its own, and take admission.trustUnboundCredentials out of the configuration"),
	reason("CleanUpPending", "ClusterSet CleanUpPending, of one member", "The member has been silent for half a day, and when all it exports is deleted is announced.", "bring it back, or keep what it exports: annotate its MemberClusterAnnounce with multicluster.lockstep.dev/hold-clean-up=true"),
	reason("CleanUpHeld", "ClusterSet CleanUpPending, of one member", "The member is silent, and an administrator keeps what it exports.", "remove the annotation when nobody needs it any more"),
	reason("CleanedUp", "ClusterSet", "A member was silent for a day, and all it exported is deleted.", "bring it back; it exports everything again by itself"),
	reason("InvalidLossPolicy", "ClusterSet Ready", "An annotation about lost members cannot be understood, so everything is kept.", "set it to what the message says"),
	reason("WithdrawFailed", "ClusterSet", "The exports of a former cluster ID may remain at the leader.", "delete the announce of the former ID there"),

	reason("Valid", "ServiceExport Valid", "The Service can be exported.", ""),
	reason("NoService", "ServiceExport Valid", "There is no Service of this name.", "create the Service, or delete the ServiceExport"),
	reason("InvalidServiceType", "ServiceExport Valid", "A Service of type ExternalName has no endpoints to share.", "export a Service of another type"),
	reason("ImportedService", "ServiceExport Valid", "The Service was itself imported from other clusters.", "export it in the cluster where its Pods run"),
	reason("Pending", "ServiceExport Ready, ServiceImport Ready", "It is not done yet.", "wait; when it stays, check the connection to the leader: lockstep mc status"),
	reason("Exported", "ServiceExport Ready", "The leader merged the export.", ""),
	reason("Failed", "ServiceExport Ready", "The export was refused, or its name is taken by another one.", "do what the message says"),
	reason("NoConflicts", "ServiceExport Conflict", "The exports of this Service agree.", ""),
	conflict("PortConflict", "ports"),
	conflict("TypeConflict", "type: headless or not"),
	conflict("SessionAffinityConflict", "session affinity"),
	conflict("SessionAffinityConfigConflict", "time of session affinity"),
	conflict("LabelsConflict", "exported labels"),
	conflict("AnnotationsConflict", "exported annotations"),
	conflict("InternalTrafficPolicyConflict", "internal traffic policy"),
	conflict("TrafficDistributionConflict", "traffic distribution"),
	conflict("IPFamilyConflict", "IP families"),
	reason("ConvergeFailure", "ResourceExport Failure", "The leader refused to merge the export.", "do what the message says"),

	reason("Ready", "ServiceImport Ready", "The Service is imported.", ""),
	reason("IPFamilyNotSupported", "ServiceImport Ready", "This cluster has none of the IP families of the Service.", "export it in a family that both clusters have"),
	reason("ImportRefused", "ServiceImport", "An object of another owner is in the way of an import.", "remove or rename the object that the Event names"),

	reason("Imported", "ClusterInfoImport Ready", "Nothing speaks against the network of the other cluster.", ""),
	reason("InvalidClusterInfo", "ClusterInfoImport Ready", "What the other cluster says of its network cannot be used.", "correct the configuration of that cluster"),
	reason("Imported", "ResourceExport Imported, ResourceImport Succeeded", "The policy is imported.", ""),
	reason("NotImported", "ResourceExport Imported", "Some member cannot import the policy; the message says which, and why.", "do what the message says"),
	reason("PolicyConflict", "ResourceExport Conflict", "An older export of the policy says something else, and counts.", "make them equal, or delete one of them"),
	reason("TierMissing", "ResourceImport Succeeded", "The tier of the policy does not exist in this member, so the policy is not there either.", "create the Tier, or name another one in the ResourceExport"),
	reason("PolicyKindMissing", "ResourceImport Succeeded", "This member has no ClusterNetworkPolicies.", "install Antrea's CRDs there, or let spec.clusterID of the ResourceImport name the members that have them"),
	reason("NameTaken", "ResourceImport Succeeded", "An object of somebody else has the name of the policy.", "delete or rename what the message names"),
	reason("InvalidPolicy", "ResourceImport Succeeded", "The import cannot be made a policy.", "correct the ResourceExport"),
	reason("ImportFailed", "ResourceImport Succeeded", "The API server of this member did not take the policy.", "do what the message says"),
	reason("ACNPImportFailed", "ResourceImport", "A member could not import a policy; the message names it and says why. The reason is that of the wire.", "do what the message says"),
	reason("LabelsLeftOut", "ClusterSet", "This member has more sets of Pod labels than it tells others of.", "keep labels that differ from Pod to Pod off Pods"),
	reason("LabelRefused", "ClusterSet", "The number of a set of labels is not kept in this member.", "do what the message says"),
	reason("GatewayChosen", "Gateway", "This Node carries the traffic to other clusters from now on.", ""),
	reason("GatewayLeft", "Gateway", "This cluster is in no ClusterSet, and this member controller did not make the Gateway, so it stays.", "delete it if nobody needs it"),
	reason("GatewayRefused", "Node", "The Node has the gateway annotation and cannot be the gateway.", "correct what the Event names"),
	reason("GatewayWaiting", "Node", "The Node will be the gateway when the Service range of the cluster is known.", "set serviceCIDR in the configuration of the controller"),
	reason("ServiceCIDRLeftOut", "Gateway", "The wire announces one Service range; others of this cluster are not announced.", "configure the one that matters as serviceCIDR"),
	reason("ExportFailed", "Gateway", "The network of this cluster could not be written to the common area.", "look at the connection to the leader: lockstep mc status"),
	reason("ExportRefused", "Gateway", "An object of another owner has the name of this cluster's ClusterInfo.", "do what the Event says"),
}

func reason(id, on, meaning, next string) Entry {
	return Entry{ID: id, Kind: Reason, On: on, Meaning: meaning, Next: next}
}

func conflict(id, property string) Entry {
	return Entry{
		ID: id, Kind: Reason, On: "ServiceExport Conflict", Source: "KEP-1645",
		Meaning: "The exports of this Service differ in their " + property + "; that of the oldest export is used everywhere.",
		Next:    "make the Services agree, or delete the export that should not count",
	}
}
