package preflight_test

import (
	"fmt"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
)

// crowd is a ClusterSet of 50 members with 100 exports each.
func crowd() preflight.Evidence {
	e := healthy()
	for m := range 48 {
		id := fmt.Sprintf("c%d", m)
		e.Members = append(e.Members, memberOf(id, byte(m+3)))
		add(&e.Leader.Announces, announceOf(id))
		add(&e.Leader.Accounts, admission.Account{Name: id + "-token", Annotated: true, BoundID: id})
		add(&e.Leader.Grants, grantOf(id+"-token", id+"-token"))
		add(&e.Leader.Exports, infoExport(id, byte(m+3)))
	}
	for i := range e.Members {
		for n := range 100 {
			name := fmt.Sprintf("s%d", n)
			add(&e.Members[i].Exported, exportedOf("shop", name))
			add(&e.Leader.Exports, serviceExportOf(e.Members[i].ID, "shop", name))
		}
	}
	return *e
}

func BenchmarkPreflightOf50Members(b *testing.B) {
	e := crowd()
	b.ReportAllocs()
	for b.Loop() {
		preflight.Run(e)
	}
}
