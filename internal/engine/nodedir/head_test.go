package nodedir

import (
	"reflect"
	"testing"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestHead: a head has the same values as the record, and every field of head is tested.
func TestHead(t *testing.T) {
	want := &Record{
		Node: spec.Node{
			Site: "karoo", Name: "db", ID: 701042, Release: 701, Staged: true, Engine: site.KVM, Privileged: true,
			Syscalls: []string{site.IOUring},
		},
		Slot: 7, Configured: true, Proven: "abc", ProvenAt: time.Date(2026, 11, 27, 16, 0, 0, 0, time.UTC), Active: true,
		Doubt: []string{"lan"},
	}
	whole := *want
	whole.Base, whole.MachineID, whole.NICs, whole.Mounts = "layer", "id", []spec.NIC{{Name: "eth0"}},
		[]spec.Mount{{Volume: "data"}}
	d := Dir{path: t.TempDir()}
	must(t, d.Write(&whole))
	got, err := d.readHead()
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	var h head
	for f := range reflect.TypeOf(h).Fields() {
		of, ok := reflect.TypeFor[Record]().FieldByName(f.Name)
		if !ok || of.Type != f.Type || reflect.ValueOf(*want).FieldByName(f.Name).IsZero() {
			t.Errorf("%s is not tested, or is no field of a record", f.Name)
		}
	}
}
