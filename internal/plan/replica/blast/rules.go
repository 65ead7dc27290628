package blast

import "github.com/lockstep-dev/lockstep/internal/plan/rules/rule"

const (
	upgradeOfPair = "upgrade of a pair with disaster recovery"
	garbage       = "garbage collector of Kubernetes"
)

// Rules are what is asked before the mirror of a standby is detached, and after.
func Rules() []rule.Rule {
	return []rule.Rule{
		{
			ID: "D-10", Severity: rule.Refuse, Title: "All machines of the platform are running, on both sides",
			Why:    "A machine that is being made, upgraded or ended is changed by whoever looks at it next, and after a detach both sides do.",
			Remedy: "wait for the machine, or mend it: kubectl get machines.platform.tkestack.io", Source: upgradeOfPair,
		},
		{
			ID: "D-11", Severity: rule.Refuse, Title: "The standby is Consistent, by two comparisons of all values that are not older than 10 minutes",
			Why:    "What the standby lacks when the mirror ends never arrives, and what it lacks can be the owner of running machines.",
			Remedy: "lockstep mirror check tells the keys; wait for the mirror to give them back", Source: upgradeOfPair,
		},
		{
			ID: "D-12", Severity: rule.Refuse, Title: "Every owner of a mirrored object is on the standby",
			Why:    "An owner is the object of that kind, name and UID. The garbage collector deletes what has none left, and with a Machine its virtual machine.",
			Remedy: "let the mirror copy the owner; when the primary lacks it as well, take the reference from the object there", Source: upgradeOfPair + ", " + garbage,
		},
		{
			ID: "D-13", Severity: rule.Refuse, Title: "Nothing is marked for deletion on the standby only",
			Why:    "Finalizers hold the object while the standby is guarded, and a check of keys sees nothing. Without the guard its controller ends the deletion.",
			Remedy: "write the primary's value again: stop whoever deletes on the standby, then restart the mirror", Source: upgradeOfPair,
		},
		{
			ID: "D-14", Severity: rule.Refuse, Title: "Both sides mean the same object by the same key, and no mirrored object belongs to one of the standby's own",
			Why:    "Owners are told by UID. An object with another one loses all its dependents, and an owner of the standby's own decides about what is the primary's.",
			Remedy: "find out who made the object on the standby, and let the mirror write the primary's", Source: upgradeOfPair,
		},
		{
			ID: "D-15", Severity: rule.Refuse, Title: "No workload cluster is changing",
			Why:    "While no mirror runs both sides manage the same machines. The standby would go on with a change as it was when the mirror ended.",
			Remedy: "let the change end, then freeze the workload cluster", Source: upgradeOfPair,
		},
		{
			ID: "D-16", Severity: rule.Refuse, Title: "The standby's controllers are guarded until the mirror is gone",
			Why:    "Without the marker kube-public/etcd-sync they work on mirrored objects already, side by side with the primary's.",
			Remedy: "find out who took the ConfigMap kube-public/etcd-sync away before anything else", Source: upgradeOfPair,
		},
		{
			ID: "D-20", Severity: rule.Refuse, Title: "What is detached is the standby",
			Why:    "To detach is to end the guard of the side that follows. On the primary it ends the protection of the side that works.",
			Remedy: "use the configuration of the mirror that runs on the standby", Source: upgradeOfPair,
		},
		{
			ID: "D-21", Severity: rule.Wait, Title: "Nothing of the mirror is left after a detach",
			Why:    "A Pod that is still there can write until it ends, over what an upgrade has written.",
			Remedy: "wait until the object is gone", Source: upgradeOfPair,
		},
		{
			ID: "D-22", Severity: rule.Refuse, Title: "The standby is not upgraded while the mirror is installed",
			Why:    "The mirror would write the primary's objects over those of the new version.",
			Remedy: "detach the mirror first: lockstep mirror detach", Source: upgradeOfPair,
		},
		{
			ID: "DET-E", Severity: rule.Wait, Title: "The standby's kube-controller-manager was started after the last repair",
			Why:    "It remembers owners that were absent once, for as long as it runs, and deletes dependents of an owner that came back.",
			Remedy: "restart the standby's kube-controller-manager, and detach when it leads again", Source: garbage + ", absentOwnerCache",
		},
		{
			ID: "F-01", Severity: rule.Refuse, Title: "The standby's garbage collector would delete nothing that is mirrored",
			Why:    "It deletes what has owners and none of them left, and then what that owned.",
			Remedy: "see D-12; the list names what would go and why", Source: upgradeOfPair + ", " + garbage,
		},
		{
			ID: "F-02", Severity: rule.Refuse, Title: "No deletion would end on the standby that the primary has not begun",
			Why:    "What is marked is deleted by whoever ends its finalizers, and nothing takes a mark back.",
			Remedy: "see D-13; the list names what would go", Source: upgradeOfPair,
		},
		{
			ID: "F-03", Severity: rule.Refuse, Title: "Each set of machines on the standby has as many as it wants",
			Why:    "Cluster API would make the machines that are missing, with addresses and disks of running ones, or take away those that are too many.",
			Remedy: "let the mirror copy the missing Machines, or finish the scaling on the primary", Source: upgradeOfPair,
		},
		{
			ID: "F-04", Severity: rule.Refuse, Title: "No machine would be destroyed",
			Why:    "With a Machine goes its infrastructure: the virtual machine, its addresses, and its disks.",
			Remedy: "do not detach; the list names Node, infrastructure and disks of each", Source: upgradeOfPair,
		},
		{
			ID: "F-05", Severity: rule.Refuse, Title: "Nothing at all is predicted to happen when the guard ends",
			Why:    "A standby in step has nothing to do. Whatever it would do is a difference that no comparison has shown.",
			Remedy: "mend what the other findings name, then predict again, also after each restart of the mirror", Source: upgradeOfPair,
		},
		{
			ID: "F-06", Severity: rule.Warn, Title: "Nothing is predicted to happen on the primary either",
			Why:    "What its controllers are about to delete or make will be missing on one side, and a way back to it asks the same questions.",
			Remedy: "let it happen on the primary first, and look again", Source: upgradeOfPair,
		},
	}
}

// byID are the rules as findings need them.
var byID = func() map[string]rule.Rule {
	index := map[string]rule.Rule{}
	for _, r := range Rules() {
		index[r.ID] = r
	}
	return index
}()
