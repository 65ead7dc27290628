package rulebook

import (
	"bytes"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/rules"
)

// ChecksPage renders the reference page of the rules that are values.
func ChecksPage(families []rules.Family) []byte {
	var page bytes.Buffer
	page.WriteString("# Rules that are asked\n\n" +
		"<!-- Made by `make generate` from internal/plan/rules. -->\n\n" +
		"`lockstep explain ID` prints the same. REFUSE means: do not go on before somebody has changed something. WAIT means: not now, look\n" +
		"again. WARN means: going on is possible; a finding that is marked as broken does harm already. The weight is the heaviest a rule can have.\n")
	for _, family := range families {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| rule | weight | what it asks for | why | what to do | source |\n| --- | --- | --- | --- | --- | --- |\n", family.Title, family.When)
		for _, r := range family.Rules {
			fmt.Fprintf(&page, "| %s | %s | %s | %s | %s | %s |\n", r.ID, r.Severity, r.Title, r.Why, r.Remedy, r.Source)
		}
	}
	return page.Bytes()
}
