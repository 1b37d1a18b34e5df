package table

import (
	"slices"
	"testing"

	"orrery/internal/control/status"
	"orrery/internal/observe"
)

// TestShortages: what is nearly full has a line, and the disk of a host only one.
func TestShortages(t *testing.T) {
	disk := observe.Shortage{Of: observe.ShortDisk, Used: 95 << 30, Size: 100 << 30}
	rows := []status.Node{
		{Node: "web", Host: "sv1", Shortages: []observe.Shortage{disk,
			{Of: observe.ShortMemory, Used: 490 << 20, Size: 512 << 20}}},
		{Node: "db", Host: "sv1", Shortages: []observe.Shortage{disk,
			{Of: observe.ShortVolume, Volume: "data", Used: 10 << 30, Size: 10 << 30}}},
	}
	shown := plainLines(rows, false, 0, noon)
	if want := []string{
		"web: its memory is 95 % full (490.0 MiB of 512.0 MiB): raise memory in site.toml, then orrery up web",
		"db: the disk of its volume data is 100 % full (10.0 GiB of 10.0 GiB)",
		"host sv1: its disk is 95 % full (95.0 GiB of 100.0 GiB): make room with orrery snapshot rm, release prune or image gc",
	}; !slices.Equal(shown[3:], want) {
		t.Errorf("%q", shown)
	}
}
