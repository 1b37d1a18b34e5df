package stand_test

import (
	"slices"
	"testing"

	"orrery/internal/plan/stand"
	"orrery/internal/site/spec"
)

// TestVolumesOnce: an exchange of volumes that was killed half way has both on record, and what is made of it has each once, as it was declared.
func TestVolumesOnce(t *testing.T) {
	data, shared := spec.Mount{Volume: "data", Path: "/a", Exclusive: true}, spec.Mount{Volume: "shared", Path: "/b"}
	none, copied := data, data
	none.Copy, none.Release = spec.NoCopy, 701
	copied.Copy, copied.Release = "snapshot", 701
	live, retired := []spec.Mount{shared, data}, []spec.Mount{shared, none}
	for name, mounts := range map[string][]spec.Mount{
		"live": live, "retired": retired, "staged": {shared, copied},
		"half retired": {data, shared, none}, "half taken": {copied, shared, data}, "half taken after": {none, shared, data},
	} {
		n := spec.Node{Release: 701, Mounts: mounts}
		if got := stand.Live(n).Mounts; !slices.Equal(got, live) {
			t.Errorf("%s, live: %+v", name, got)
		}
		if got := stand.Retired(n).Mounts; name != "staged" && !slices.Equal(got, retired) {
			t.Errorf("%s, retired: %+v", name, got)
		}
		if got := len(stand.Retired(n).Mounts); got != 2 {
			t.Errorf("%s, retired: %d volumes", name, got)
		}
	}
}
