package image

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTook: a layer is expected to take as long as the last one with the same title, whatever its
// digest.
func TestTook(t *testing.T) {
	s := Open(t.TempDir())
	if got := s.Took("debian + cam"); got != 0 {
		t.Errorf("of an empty store: %s", got)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for digest, r := range map[string]Record{
		"aa": {Title: "debian + cam", Seconds: 70, Built: at},
		"bb": {Title: "debian + cam", Seconds: 50.5, Built: at.Add(time.Hour)},
		"cc": {Title: "debian + cam", Built: at.Add(2 * time.Hour)}, // by a version that did not record it
		"dd": {Title: "debian", Seconds: 9, Built: at.Add(3 * time.Hour)},
	} {
		text, err := json.Marshal(r)
		if err == nil {
			err = os.MkdirAll(filepath.Join(s.Dir, digest), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(s.Dir, digest, "layer.json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for title, want := range map[string]time.Duration{"debian + cam": 50500 * time.Millisecond,
		"debian": 9 * time.Second, "debian + web": 0} {
		if got := s.Took(title); got != want {
			t.Errorf("%s took %s, not %s", title, got, want)
		}
	}
}
