package blast

// fate is what becomes of a node. It only ever gets worse.
type fate struct {
	*node
	// marked: it is being deleted, or will be.
	marked bool
	// waits: its dependents go first (foreground); orphans: they are to stay.
	waits, orphans bool
	gone           bool
	why            string
	owners         []end
	namespace      *fate // when that one may be emptied
	// dependents refer to it, or lie in it; blockers are those it waits for.
	dependents, blockers []*fate
}

// end is an owner of a fate.
type end struct {
	absent bool
	of     *fate // nil: absent, or an object that nothing can happen to
	text   string
}

// collect runs the rules of the garbage collector and of the Namespace controller
// to their fixed point. With ended, whatever else holds an object back, such as
// the finalizer of a machine, has ended as well.
//
// Source: k8s.io/kubernetes, pkg/controller/garbagecollector (attemptToDeleteItem,
// processTransitions) and pkg/controller/namespace/deletion.
func (w *World) collect(ended bool) []*fate {
	fates := w.tie()
	c := collector{world: w, ended: ended, queued: map[*fate]bool{}}
	for _, f := range fates {
		if f.Deleting {
			f.marked, f.waits, f.why = true, f.has(foreground), "it is marked for deletion"
			f.orphans = f.has(orphan) && !f.waits // with both, its dependents may go
		}
		c.push(f)
	}
	for len(c.queue) > 0 {
		f := c.queue[0]
		c.queue, c.queued[f] = c.queue[1:], false
		c.step(f)
	}
	c.stuck(fates)
	return fates
}

// tie makes fates of all nodes and joins them with their owners.
func (w *World) tie() []*fate {
	fates, byID := make([]*fate, 0, len(w.nodes)), map[id]*fate{}
	for _, n := range w.nodes {
		f := &fate{node: n}
		fates, byID[n.self] = append(fates, f), f
	}
	for _, f := range fates {
		for i, r := range f.node.owners {
			self, ok := w.present(r)
			owner := byID[self]
			f.owners = append(f.owners, end{absent: !ok, of: owner, text: ownerText(f.node, i)})
			if owner == nil {
				continue
			}
			owner.dependents = append(owner.dependents, f)
			if r.blocks {
				owner.blockers = append(owner.blockers, f)
			}
		}
		if namespace := w.closing[f.Namespace]; namespace != nil && f.Namespace != "" {
			f.namespace = byID[namespace.self]
			f.namespace.dependents = append(f.namespace.dependents, f)
		}
	}
	return fates
}

func ownerText(n *node, i int) string {
	owner := n.Owners[i]
	return Thing{Kind: owner.Kind, Group: owner.Group, Namespace: n.Namespace, Name: owner.Name}.String() + " (UID " + owner.UID + ")"
}

type collector struct {
	world  *World
	ended  bool
	queue  []*fate
	queued map[*fate]bool
}

func (c *collector) push(f *fate) {
	if !c.queued[f] {
		c.queued[f] = true
		c.queue = append(c.queue, f)
	}
}

// step looks at one object, and again at its dependents when its fate has changed.
func (c *collector) step(f *fate) {
	before := [4]bool{f.marked, f.waits, f.orphans, f.gone}
	c.mark(f)
	f.gone = f.gone || f.marked && c.ends(f)
	if before == [4]bool{f.marked, f.waits, f.orphans, f.gone} {
		return
	}
	for _, d := range f.dependents {
		c.push(d)
	}
}

// mark decides whether an object that lives is deleted, and in which way.
func (c *collector) mark(f *fate) {
	if f.Deleting {
		return
	}
	if f.namespace != nil && f.namespace.marked && !f.marked {
		f.marked, f.why = true, "Namespace "+f.Namespace+" is emptied"
	}
	why, waiting, ok := c.abandoned(f)
	if !ok {
		return
	}
	if !f.marked {
		f.marked, f.why, f.orphans = true, why, f.has(orphan)
		f.waits = f.has(foreground) && !f.orphans
	}
	// Deleted while an owner waits for it, and with dependents of its own, it waits
	// for those in turn, whatever its finalizers say.
	if waiting && len(f.dependents) > 0 {
		f.waits, f.orphans = true, false
	}
}

// abandoned: no owner is left, and at least one ended in a way that takes
// dependents along. An owner whose dependents are to stay only drops out. A solid
// owner keeps an object whatever else it refers to.
func (c *collector) abandoned(f *fate) (why string, waiting, ok bool) {
	if c.world.unresolvable(f.node) {
		return "", false, false
	}
	for _, owner := range f.owners {
		switch {
		case owner.absent:
			why, ok = "its owner "+owner.text+" is absent", true
		case owner.of == nil:
			return "", false, false
		case owner.of.orphans:
		case owner.of.waits:
			waiting, ok = true, true
			why = orElse(why, "its owner "+owner.text+" is deleted, dependents first")
		case owner.of.gone:
			ok = true
			why = orElse(why, "its owner "+owner.text+" is deleted")
		default:
			return "", false, false
		}
	}
	return why, waiting, ok
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// ends tells whether nothing holds a deleted object back. One that was marked
// long ago and has no finalizer goes with the next write to it, whoever makes it.
func (c *collector) ends(f *fate) bool {
	switch {
	case c.ended, f.isNamespace():
		return true
	case f.Deleting && len(f.Finalizers) == 0:
		return false
	}
	return len(f.held()) == 0
}

// stuck takes back what cannot end: an object that waits for dependents of which
// one is held back. Such a one has taken its dependents along all the same.
func (c *collector) stuck(fates []*fate) {
	for changed := true; changed; {
		changed = false
		for _, f := range fates {
			if f.gone && f.waits && c.blocked(f) {
				f.gone, changed = false, true
			}
		}
	}
}

func (c *collector) blocked(f *fate) bool {
	for _, d := range f.blockers {
		if d.marked && !d.gone || c.world.unresolvable(d.node) {
			return true
		}
	}
	return false
}

func (n *node) isNamespace() bool { return n.Kind == "Namespace" && n.Group == "" }
