package twin_test

import (
	"reflect"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/twin"

	"pgregory.net/rapid"
)

func TestRelease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		before := clone(s)
		for _, number := range []int{700, 701, 702} {
			made, err := twin.Release(s, number)
			if err != nil {
				t.Fatal(err)
			}
			if made.Key() != s.Key() || made.Stage != 0 || len(made.Nodes) != len(s.Nodes) {
				t.Fatalf("%+v", made)
			}
			for i := range made.Nodes {
				releasedNode(t, number, &made.Nodes[i], &s.Nodes[i])
			}
			staged, err := twin.Quarantine(s, number)
			if err != nil || staged.Stage != number {
				t.Fatal(staged, err)
			}
		}
		if same, err := twin.Release(s, 0); err != nil || same != s {
			t.Fatal("release 0 is not the site itself")
		}
		if !reflect.DeepEqual(s, before) {
			t.Fatal("the site is another")
		}
	})
}

func releasedNode(t *rapid.T, number int, n, original *site.Node) {
	if n.Release != number || n.FullID() != site.FullID(number, original.ID) || n.ID != original.ID {
		t.Fatalf("%+v", n)
	}
	image, file := original.Image, original.Requirements.File
	if number == 701 {
		image, file = "next", "v701.txt"
	}
	if n.Image != image || n.Requirements.File != file {
		t.Fatalf("%+v", n)
	}
}

// TestReplacedRoles: a replacement role takes the name of the original role, and keeps its own
// directory.
func TestReplacedRoles(t *testing.T) {
	s := sites().Example(3)
	made, err := twin.Release(s, 702)
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"db": "roles/db2", "receptor": "roles/receptor2",
		"receptor2": "roles/receptor2", "base": "roles/base"} {
		if r, ok := made.Role(name); !ok || r.Dir != dir {
			t.Errorf("role %s: %+v", name, r)
		}
	}
	if r, _ := made.Role("receptor"); r.SimulatedBy != "receptor-sim" {
		t.Error("a new version without a simulator of its own is no longer simulated")
	}
	if _, err := twin.Release(made, 701); err == nil {
		t.Error("a release is made of another")
	}
	dev, err := twin.New(s, twin.Options{Name: "dev1", Release: 702})
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := dev.Role("receptor"); r.Dir != "roles/receptor-sim" {
		t.Errorf("%+v", r)
	}
}
