package releases

import (
	"reflect"
	"testing"
)

func TestDifferences(t *testing.T) {
	before := []Contents{
		{Node: "gone"},
		{Node: "same", Content: []string{"l1"}, Packages: map[string]string{"nginx": "1"}},
		{Node: "changed", Content: []string{"l1"}, Packages: map[string]string{"nginx": "1", "old": "3"},
			Python: map[string]string{"numpy": "2"}},
	}
	after := []Contents{
		{Node: "changed", Content: []string{"l2"}, Packages: map[string]string{"nginx": "2", "zoo": "1"},
			Python: map[string]string{"numpy": "2"}},
		{Node: "same", Content: []string{"l1"}, Packages: map[string]string{"nginx": "1"}},
		{Node: "new"},
	}
	want := []Difference{
		{Node: "changed", Content: true,
			Packages: []Change{{"Debian", "nginx", "1", "2"}, {"Debian", "old", "3", ""}, {"Debian", "zoo", "", "1"}}},
		{Node: "same"},
		{Node: "new", Added: true},
		{Node: "gone", Removed: true},
	}
	got := Differences(before, after, nil)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got[0].Same() || !got[1].Same() || got[2].Same() || got[3].Same() {
		t.Error("which are the same?")
	}
}
