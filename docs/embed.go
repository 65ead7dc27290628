// Package docs holds what the documentation and the program both show.
package docs

import _ "embed"

// Rules is rules.tsv: the promises of controllers and command line. "## title"
// begins a section, any other line is an id, a tab and the meaning.
//
//go:embed rules.tsv
var Rules string
