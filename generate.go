//go:build generate

// Package lockstep lists how every generated file of this repository is made.
// The list runs with `make generate`; a test of internal/arch runs it in a copy
// of the tree and compares.
package lockstep

// Deep copies of the API kinds (zz_generated.deepcopy.go) and their CRDs.
//go:generate go tool -modfile=tools/gen/go.mod controller-gen object crd paths=./api/... output:crd:dir=config/crd

// The digests of the manifests, which "mc deploy" compares.
//go:generate go test ./config -run=TestDigests -update-digests -count=1

// The CRDs of the MCS API, from the module that go.mod names.
//go:generate go test ./config -run=TestMCSCRDsAreThoseOfTheModule -update -count=1

// The Helm charts, from what config.Render makes.
//go:generate go -C tools/charts run ./generate

// The page that shows which test proves which rule.
//go:generate go test ./internal/arch -run=TestRulesPage -update -count=1

// The page of the rules that admission and preflight ask.
//go:generate go test ./internal/arch -run=TestChecksPage -update -count=1
