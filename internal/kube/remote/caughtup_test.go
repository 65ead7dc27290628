package remote

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCachesCoverWhatIsLive(t *testing.T) {
	live := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "90"}}
	for name, version := range map[string]string{"a": "50", "b": "70"} {
		live.Items = append(live.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}})
	}
	for name, tc := range map[string]struct {
		shown map[string]uint64
		want  bool
	}{
		"the same":                     {map[string]uint64{"a": 50, "b": 70}, true},
		"even newer":                   {map[string]uint64{"a": 95, "b": 70, "made after the list": 91}, true},
		"an update is missing":         {map[string]uint64{"a": 50, "b": 69}, false},
		"a creation is missing":        {map[string]uint64{"a": 50}, false},
		"a deletion is missing":        {map[string]uint64{"a": 50, "b": 70, "gone": 60}, false},
		"nothing is shown":             {map[string]uint64{}, false},
		"the last write is a deletion": {map[string]uint64{"a": 50, "b": 70, "gone": 90}, false},
	} {
		if got := covers(tc.shown, live); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
