// Package meter serves what a mirror and its monitor tell of themselves as
// metrics. Values are asked for when somebody scrapes.
package meter

import "github.com/prometheus/client_golang/prometheus"

// Metric is one row of the table.
type Metric struct {
	Name, Help string
	Type       prometheus.ValueType
	Label      string // empty: none
}

func (m Metric) desc() *prometheus.Desc {
	var labels []string
	if m.Label != "" {
		labels = []string{m.Label}
	}
	return prometheus.NewDesc(m.Name, m.Help, labels, nil)
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// The metrics of the mirror. The first two names are those of the wire.
var (
	LocalKeys  = Metric{"local_target_keys_count", "Mirrored keys of the standby, by the last comparison.", gauge, ""}
	RemoteKeys = Metric{"remote_target_keys_count", "Mirrored keys of the primary, by the last comparison.", gauge, ""}

	Active          = Metric{"lockstep_mirror_active", "1 on the replica that has the Lease.", gauge, ""}
	Phase           = Metric{"lockstep_mirror_phase", "1 for what the mirror is doing.", gauge, "phase"}
	LagSeconds      = Metric{"lockstep_mirror_lag_seconds", "For how many seconds the standby has lacked something, or nobody has known.", gauge, ""}
	LagRevisions    = Metric{"lockstep_mirror_lag_revisions", "Revisions of the primary that the standby does not have.", gauge, ""}
	PrimaryRevision = Metric{"lockstep_mirror_primary_revision", "The highest revision of the primary that is known.", gauge, ""}
	CopiedRevision  = Metric{"lockstep_mirror_copied_revision", "The last revision of the primary that the standby has as a whole.", gauge, ""}
	Operations      = Metric{"lockstep_mirror_operations_total", "Puts and deletions written into the standby.", counter, ""}
	Transactions    = Metric{"lockstep_mirror_transactions_total", "Transactions written into the standby.", counter, ""}
	Unanswered      = Metric{"lockstep_mirror_transactions_unanswered_total", "Transactions whose answer was lost, and that were settled by the checkpoint.", counter, ""}
	LocalEvents     = Metric{"lockstep_mirror_local_events_total", "Changes of the primary that stay there.", counter, ""}
	Copies          = Metric{"lockstep_mirror_copies_total", "Copies that were begun.", counter, "copy"}
	CopyKeys        = Metric{"lockstep_mirror_copy_keys", "Keys of the copy under way, or of the last.", gauge, ""}
	CopyKeysDone    = Metric{"lockstep_mirror_copy_keys_done", "How many of them have been written.", gauge, ""}
	Deleted         = Metric{"lockstep_mirror_surplus_deleted_total", "Keys that copies removed because the primary had them no longer.", counter, ""}
	Foreign         = Metric{"lockstep_mirror_foreign_writes_total", "Changes of mirrored keys of the standby by somebody else.", counter, "change"}
	Healed          = Metric{"lockstep_mirror_healed_keys_total", "Keys that were given back to the standby.", counter, ""}
	Differences     = Metric{"lockstep_mirror_differences", "Keys that are not equal, by the last comparison.", gauge, "kind"}
	Keys            = Metric{"lockstep_mirror_keys", "Keys by the rule that decides about them, by the last comparison.", gauge, "rule"}
	EqualTime       = Metric{"lockstep_mirror_equal_timestamp_seconds", "When both sides were last proven equal, in seconds since 1970.", gauge, ""}
	EqualRevision   = Metric{"lockstep_mirror_equal_revision", "The revision of the primary at which they were.", gauge, ""}
	Verdict         = Metric{"lockstep_mirror_verdict", "1 for the verdict of the monitor.", gauge, "verdict"}
	Dangling        = Metric{"lockstep_mirror_dangling_owners", "Owners that mirrored objects of the standby refer to and that are not there.", gauge, ""}
	ForeignCut      = Metric{"lockstep_mirror_foreign_writes_since_cut", "Changes by somebody else between the last cut and the end of its comparison.", gauge, ""}
)

// OfMirror and OfMonitor are what each of them serves.
var (
	OfMirror = []Metric{
		LocalKeys, RemoteKeys, Active, Phase, LagSeconds, LagRevisions, PrimaryRevision, CopiedRevision, Operations, Transactions, Unanswered,
		LocalEvents, Copies, CopyKeys, CopyKeysDone, Deleted, Foreign, Healed, Differences, Keys, EqualTime, EqualRevision,
	}
	OfMonitor = []Metric{LocalKeys, RemoteKeys, Differences, Keys, EqualTime, EqualRevision, Verdict, Dangling, ForeignCut}
)

// Tell gives one value.
type Tell func(m Metric, value float64, label ...string)

// Meter is a prometheus.Collector.
type Meter struct {
	Metrics []Metric
	// Read tells all values as they are now.
	Read func(Tell)
}

// Describe implements prometheus.Collector.
func (m Meter) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range m.Metrics {
		out <- metric.desc()
	}
}

// Collect implements prometheus.Collector.
func (m Meter) Collect(out chan<- prometheus.Metric) {
	m.Read(func(metric Metric, value float64, label ...string) {
		out <- prometheus.MustNewConstMetric(metric.desc(), metric.Type, value, label...)
	})
}
