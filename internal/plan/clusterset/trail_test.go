package clusterset

import "testing"

// What a heartbeat makes of the announce it finds, after what became of its writes.
func TestTrail(t *testing.T) {
	const none = "" // no announce is found
	type want struct{ asLeft, foreign bool }
	ours, backup, unknown := want{asLeft: true}, want{foreign: true}, want{}
	try := func(touch string, then func(*Trail)) func(*Trail) {
		return func(t *Trail) {
			t.Try(touch)
			if then != nil {
				then(t)
			}
		}
	}
	written, refused, lost := (*Trail).Confirm, (*Trail).Refuse, (func(*Trail))(nil)
	for name, tc := range map[string]struct {
		reason string
		did    []func(*Trail)
		found  string
		want   want
	}{
		"nothing yet":                      {"who has written nothing misses nothing", nil, "12", unknown},
		"written":                          {"it is there", []func(*Trail){try("12", written)}, "12", ours},
		"written and older":                {"only a backup is", []func(*Trail){try("12", written)}, "11", backup},
		"written and gone":                 {"likewise", []func(*Trail){try("12", written)}, none, backup},
		"an answer is lost, it was":        {"the write counts all the same", []func(*Trail){try("12", written), try("13", lost)}, "13", ours},
		"an answer is lost, it was not":    {"the one before is still there", []func(*Trail){try("12", written), try("13", lost)}, "12", ours},
		"an answer is lost, older":         {"neither of the two", []func(*Trail){try("12", written), try("13", lost)}, "11", backup},
		"refused":                          {"the one before is still there", []func(*Trail){try("12", written), try("13", refused)}, "12", ours},
		"refused and there":                {"nobody else writes it", []func(*Trail){try("12", written), try("13", refused)}, "13", backup},
		"the first answer is lost, it was": {"it was written", []func(*Trail){try("12", lost)}, "12", ours},
		"the first answer is lost":         {"the process before left it so", []func(*Trail){try("12", lost)}, "11", unknown},
		"the first answer is lost, none":   {"there never was one", []func(*Trail){try("12", lost)}, none, unknown},
		"the first is refused":             {"the process before left it so", []func(*Trail){try("12", refused)}, "11", unknown},
		"an old try after a written one":   {"the written one came later", []func(*Trail){try("11", lost), try("12", written)}, "11", backup},
		"seen once":                        {"then it was written, whatever the answer", []func(*Trail){try("12", lost), func(t *Trail) { t.See("12", true) }}, "11", backup},
	} {
		t.Run(name, func(t *testing.T) {
			var trail Trail
			for _, did := range tc.did {
				did(&trail)
			}
			asLeft, foreign := trail.See(tc.found, tc.found != none)
			if got := (want{asLeft, foreign}); got != tc.want {
				t.Errorf("got %+v, want %+v: %s", got, tc.want, tc.reason)
			}
		})
	}
}
