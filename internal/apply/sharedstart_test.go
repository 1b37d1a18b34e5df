package apply

import (
	"testing"
	"time"
)

// TestMeeting: all callers before the moment get the same one, and a caller after it gets another
// one.
func TestMeeting(t *testing.T) {
	m := &sharedStart{margin: time.Hour}
	first := m.next()
	if again := m.next(); !again.Equal(first) || time.Until(first) < time.Minute {
		t.Errorf("the moments are %s and %s", first, again)
	}
	m.at = time.Now().Add(-time.Minute)
	if later := m.next(); !later.After(first.Add(-time.Minute)) {
		t.Errorf("the moment after that is %s", later)
	}
}
