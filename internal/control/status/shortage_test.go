package status

import (
	"reflect"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// TestShortagesOfStrangers: of what a host reports, only shortages that can be are shown.
func TestShortagesOfStrangers(t *testing.T) {
	good := []observe.Shortage{{Of: "disk", Used: 9, Size: 10}, {Of: "memory", Used: 9, Size: 10},
		{Of: "volume", Volume: "data", Used: 9, Size: 10}}
	n := observe.Node{Node: spec.Node{Mounts: []spec.Mount{{Volume: "data"}}}}
	n.Shortages = append([]observe.Shortage{{Of: "disk", Used: 1, Size: 10}, {Of: "patience", Used: 9, Size: 10},
		{Of: "volume", Volume: "\x1b[2J", Used: 9, Size: 10}, {Of: "volume", Used: 9, Size: 10},
		{Of: "memory", Volume: "data", Used: 9, Size: 10}, {Of: "memory", Used: 9}}, good...)
	var r Node
	if r.setObserved(&n); !reflect.DeepEqual(r.Shortages, good) {
		t.Errorf("%+v", r.Shortages)
	}
}
